// Calls the tool `wait` with a TypeScript client, and cancels it or lets it time out. The process,
// and so the connection, stays until its input ends.
//
// node cancelling.mjs SDK URL cancel|timeout object|stream REQUEST-ID
const [sdk, url, way, form, requestId] = process.argv.slice(2);
const modules = {
  1: ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/streamableHttp.js"],
  2: ["@modelcontextprotocol/client"],
}[sdk];
const { Client, StreamableHTTPClientTransport } = Object.assign({}, ...await Promise.all(modules.map((name) => import(name))));
const client = new Client({ name: "test", version: "1" });
client.onerror = (error) => console.log(`error: ${error.message}`);
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { "x-request-id": requestId } } }));
const abort = new AbortController();
const options = { signal: abort.signal };
if (form === "stream") options.onprogress = () => {};
if (way === "timeout") options.timeout = 1500;
const params = { name: "wait", arguments: {} };
const call = sdk === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
call.then(() => console.log("answered"), (error) => console.log(`ended: ${error.message}`));
console.log("calling");
process.stdin.on("data", () => abort.abort());
process.stdin.on("end", () => process.exit(0));
