// Reads [{source, flags}] from standard input and writes recheck's verdict on each, in order.
import { createRequire } from "node:module";

const require = createRequire(new URL("../mcp/package.json", import.meta.url));
const { checkSync } = require("recheck");

let text = "";
for await (const part of process.stdin) text += part;

// Without a seed the fuzzer judges another way in each run.
// Its own time limits would judge another way on a busy machine; the caller has one.
const unlimited = { seedingTimeout: null, incubationTimeout: null, attackTimeout: null };
const options = { timeout: 120000, randomSeed: 1, recallTimeout: -1, ...unlimited };
const verdicts = JSON.parse(text).map(({ source, flags }) => {
  const found = checkSync(source, flags, options);
  return {
    status: found.status,
    complexity: found.complexity?.summary ?? found.error?.kind ?? "",
    attack: found.attack?.pattern ?? "",
  };
});
process.stdout.write(JSON.stringify(verdicts));
