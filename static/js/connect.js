// "Test connection": speaks to each MCP endpoint from this page, as its clients do, in both eras of
// the protocol, and shows what it was told. Everything is put on the page as text.
const HANDSHAKE = "2025-11-25";
const STATELESS = "2026-07-28";
const CLIENT = { name: "codeinfo-connect-page", version: "1" };
const META = "io.modelcontextprotocol";

const test = document.querySelector("[data-connection-test]");
const results = test.querySelector("[data-test-results]");
const token = () => test.querySelector("[data-test-token]")?.value ?? "";

async function post(path, body, headers) {
  const authorization = token() ? { authorization: `Bearer ${token()}` } : {};
  try {
    return await fetch(path, {
      method: "POST",
      credentials: "omit",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...authorization, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  } catch {
    throw new Error("No answer: this page cannot reach the server. Is it still running?");
  }
}

// The words of a JSON-RPC error: its message, and what `data` says of the cause and the way on.
function words(error, status) {
  if (status === 401) return "The server asks for the token of CODEINFO_MCP_TOKEN. Enter it above.";
  if (!error) return `The answer was ${status}, not in MCP. Is there a proxy in between?`;
  const { reason, message } = error.data ?? {};
  return [error.message, reason ?? message].filter((text, at, all) => text && all.indexOf(text) === at).join(": ");
}

async function call(path, method, params, headers = {}) {
  const response = await post(path, { id: 1, method, params }, headers);
  const answer = await response.json().catch(() => null);
  if (answer?.result) return answer.result;
  throw new Error(words(answer?.error, response.status));
}

// A server may well be there, and say that its tools are not.
async function toolsOf(server, listing) {
  const who = server ? `${server.name} ${server.version}` : "The server";
  try {
    const { tools } = await listing;
    return `${who} · ${tools.length} tool${tools.length === 1 ? "" : "s"}: ${tools.map((tool) => tool.name).join(", ")}`;
  } catch (error) {
    throw new Error(`${who} answers, but has no tools now. ${error.message}`);
  }
}

async function withHandshake(path) {
  const hello = { protocolVersion: HANDSHAKE, capabilities: {}, clientInfo: CLIENT };
  const { serverInfo, protocolVersion } = await call(path, "initialize", hello);
  const agreed = { "mcp-protocol-version": protocolVersion };
  await post(path, { method: "notifications/initialized" }, agreed);
  return toolsOf(serverInfo, call(path, "tools/list", {}, agreed));
}

async function stateless(path) {
  const ask = (method) =>
    call(
      path,
      method,
      { _meta: { [`${META}/protocolVersion`]: STATELESS, [`${META}/clientCapabilities`]: {}, [`${META}/clientInfo`]: CLIENT } },
      { "mcp-protocol-version": STATELESS, "mcp-method": method },
    );
  const { _meta } = await ask("server/discover");
  return toolsOf(_meta?.[`${META}/serverInfo`], ask("tools/list"));
}

const ERAS = [
  { version: HANDSHAKE, how: "initialize, tools/list", speak: withHandshake },
  { version: STATELESS, how: "server/discover, tools/list", speak: stateless },
];

function row(endpoint, era) {
  const made = document.getElementById("test-row").content.firstElementChild.cloneNode(true);
  made.querySelector("h3").textContent = `${endpoint.title} · ${era.version}`;
  return made;
}

function show(item, { icon, level, badge, text }) {
  item.className = `service is-${level}`;
  item.querySelector("use").setAttribute("href", `#i-${icon}`);
  item.querySelector("p").textContent = text;
  const mark = item.querySelector(".badge");
  mark.className = `badge ${{ ok: "badge--ok", bad: "badge--danger", off: "badge--run" }[level]}`;
  mark.textContent = badge;
}

// Endpoint → what it answered with the protocol before.
const answers = new Map();

async function run(endpoint, era) {
  const item = row(endpoint, era);
  results.append(item);
  show(item, { icon: "off", level: "off", badge: "Testing…", text: era.how });
  const started = performance.now();
  try {
    const text = await era.speak(endpoint.path);
    const took = Math.max(1, Math.round(performance.now() - started));
    const same = answers.get(endpoint.path) === text;
    answers.set(endpoint.path, text);
    show(item, { icon: "ok", level: "ok", badge: `${took.toLocaleString("en")} ms`, text: same ? "Same server and tools" : text });
  } catch (error) {
    show(item, { icon: "bad", level: "bad", badge: "Failed", text: error.message });
  }
}

const endpoints = [...results.querySelectorAll("[data-test]")].map(({ dataset }) => ({ path: dataset.test, title: dataset.title }));

test.querySelector("[data-test-run]").addEventListener("click", async ({ currentTarget: button }) => {
  button.disabled = true;
  results.setAttribute("aria-busy", "true");
  results.replaceChildren();
  answers.clear();
  for (const endpoint of endpoints) for (const era of ERAS) await run(endpoint, era);
  results.removeAttribute("aria-busy");
  button.disabled = false;
});
