// Reads [{source, flags}] from standard input and writes recheck's verdict on each, in order.
import { createRequire } from "node:module";

const require = createRequire(new URL("../mcp/package.json", import.meta.url));
const { checkSync } = require("recheck");

let text = "";
for await (const part of process.stdin) text += part;

// Without a seed the fuzzer judges another way in each run.
// On a busy machine a verdict takes its time: what never comes is ended by the caller.
const options = { timeout: 120000, randomSeed: 1, recallTimeout: -1 };
const verdicts = JSON.parse(text).map(({ source, flags }) => {
  const found = checkSync(source, flags, options);
  return {
    status: found.status,
    complexity: found.complexity?.summary ?? found.error?.kind ?? "",
    attack: found.attack?.pattern ?? "",
  };
});
process.stdout.write(JSON.stringify(verdicts));
