// Calls every method with a TypeScript client, over stdio and over HTTP, and prints both answers.
//
// node stdio.mjs SDK URL COMMAND ARGUMENT…
const [sdk, url, command, ...args] = process.argv.slice(2);
const modules = {
  1: ["sdk/client/index.js", "sdk/client/streamableHttp.js", "sdk/client/stdio.js"],
  2: ["client", "client/stdio"],
}[sdk];
const paths = modules.map((name) => import(`@modelcontextprotocol/${name}`));
const { Client, StreamableHTTPClientTransport, StdioClientTransport } = Object.assign({}, ...await Promise.all(paths));

async function answers(transport, era) {
  const options = era === "modern" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client({ name: "test", version: "1" }, options);
  await client.connect(transport);
  const call = (name, given, options) => {
    const params = { name, arguments: given };
    return sdk === "1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
  };
  const found = {
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    tools: await client.listTools(),
    prompts: await client.listPrompts(),
    prompt: await client.getPrompt({ name: "explain", arguments: { path: "src/retry.py" } }),
    resources: await client.listResources(),
    templates: await client.listResourceTemplates(),
    file: await client.readResource({ uri: "codeinfo://lighthouse/src/retry.py" }),
    completion: await client.complete({ ref: { type: "ref/prompt", name: "explain" }, argument: { name: "path", value: "ret" } }),
    search: await call("VectorSearch", { query: "retry backoff", repository: "lighthouse" }, {}),
    refused: await call("VectorSearch", { query: "retry", repository: "nope" }).catch((error) => error.message),
    missing: await client.readResource({ uri: "codeinfo://nope/" }).catch((error) => error.message),
  };
  await client.close();
  return found;
}

const eras = sdk === "1" ? ["legacy"] : ["legacy", "modern"];
const results = {};
for (const era of eras) {
  const env = { ...process.env };
  results[era] = {
    stdio: await answers(new StdioClientTransport({ command, args, env }), era),
    http: await answers(new StreamableHTTPClientTransport(new URL(url)), era),
  };
}
process.stdout.write(JSON.stringify(results), () => process.exit(0));
