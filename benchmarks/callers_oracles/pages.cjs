// Asks the TypeScript compiler what each call of a package with pages of Vue or Svelte means, over
// the code that @vue/language-core and svelte2tsx make: `node pages.cjs folder [alias=place]…`,
// where an alias that no tsconfig has is `@/*=src/*`. Prints what python.py prints. What calls mean
// is mapped back to the page; calls that cannot be mapped are unknown.
const ts = require("typescript");
const fs = require("fs");
const path = require("path");
const vue = require("@vue/language-core");
const { svelte2tsx } = require("svelte2tsx");
const { decode } = require("@jridgewell/sourcemap-codec");
const { DECLARED, addPaths, isFunction, isProperty, nameOf } = require("./declarations.cjs");

const root = fs.realpathSync(process.argv[2]);
const files = [];
const paths = {};
const pages = new Map(); // file of the code of a page → {text, code, back}

for (const alias of process.argv.slice(3)) {
  const [name, place] = alias.split("=");
  paths[name] = [path.resolve(root, place)];
}

// --- the code of pages: `back` gives the offset in the page of one in the code, or null ---

const vuePlugin = vue.createVueLanguagePlugin(ts, { allowJs: true }, vue.getDefaultCompilerOptions(), (id) => id);
const language = vue.createLanguage([vuePlugin], new Map(), () => {});

function vuePage(file, text) {
  const script = language.scripts.set(file, ts.ScriptSnapshot.fromString(text), "vue");
  const { code } = vuePlugin.typescript.getServiceScript(script.generated.root);
  const spans = code.mappings.flatMap((mapping) =>
    mapping.sourceOffsets.map((source, i) => ({
      source,
      generated: mapping.generatedOffsets[i],
      length: (mapping.generatedLengths || mapping.lengths)[i],
      isSame: (mapping.generatedLengths || mapping.lengths)[i] === mapping.lengths[i],
    }))
  );
  spans.sort((a, b) => a.generated - b.generated);
  const back = (offset) => {
    for (const { source, generated, length, isSame } of spans) {
      if (offset < generated || offset >= generated + Math.max(length, 1)) continue;
      if (isSame || offset === generated) return source + offset - generated;
    }
    return null;
  };
  return { text, code: code.snapshot.getText(0, code.snapshot.getLength()), back };
}

function sveltePage(file, text) {
  const isTsFile = /lang=["']ts/.test(text);
  const { code, map } = svelte2tsx(text, { filename: file, isTsFile, mode: "ts", version: "5.0.0" });
  const mappings = decode(map.mappings);
  const [lines, sourceLines] = [code, text].map((each) => ts.computeLineStarts(each));
  const back = (offset) => {
    const line = ts.computeLineOfPosition(lines, offset);
    const column = offset - lines[line];
    const segment = (mappings[line] || []).filter((each) => each[0] <= column && each.length > 1).pop();
    return segment ? sourceLines[segment[2]] + segment[3] + column - segment[0] : null;
  };
  return { text, code, back };
}

function addPage(file) {
  const text = fs.readFileSync(file, "utf8");
  try {
    pages.set(`${file}.tsx`, (file.endsWith(".vue") ? vuePage : sveltePage)(file, text));
    files.push(`${file}.tsx`);
  } catch (error) {
    process.stderr.write(`${file}: ${error.message}\n`);
  }
}

(function walk(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const each = path.join(folder, entry.name);
    if (entry.isDirectory() && !/^(node_modules|\..*)$/.test(entry.name)) walk(each);
    else if (/^(ts|js)config.*\.json$/.test(entry.name)) addPaths(paths, each);
    else if (/\.(ts|tsx|mts|js)$/.test(each) && !DECLARED.test(each)) files.push(each);
    else if (/\.(vue|svelte)$/.test(each)) addPage(each);
  }
})(root);

// --- the program ---

const options = {
  allowArbitraryExtensions: true,
  allowImportingTsExtensions: true,
  allowJs: true,
  jsx: ts.JsxEmit.Preserve,
  lib: ["lib.esnext.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  noEmit: true,
  paths,
  skipLibCheck: true,
  strict: true,
  target: ts.ScriptTarget.ESNext,
  types: [],
};
const host = ts.createCompilerHost(options);
const exists = host.fileExists.bind(host);
const read = host.readFile.bind(host);
host.fileExists = (file) => pages.has(file) || exists(file);
host.readFile = (file) => pages.get(file)?.code ?? read(file);
host.getSourceFile = (file, version) => {
  const text = host.readFile(file);
  return text === undefined ? undefined : ts.createSourceFile(file, text, version, true);
};

function* places(name, from) {
  if (name.startsWith(".")) yield path.resolve(path.dirname(from), name);
  else {
    for (const [key, targets] of Object.entries(paths)) {
      const [head, tail] = key.split("*");
      if (tail === undefined || !name.startsWith(head)) continue;
      for (const target of targets) yield target.replace("*", name.slice(head.length));
    }
  }
}

function resolve(name, from) {
  for (const place of places(name, from)) {
    for (const ending of ["", ".vue", "/index.vue"]) {
      const resolvedFileName = `${place}${ending}.tsx`;
      if (pages.has(resolvedFileName)) return { resolvedFileName, extension: ".tsx" };
    }
  }
  const find = (file) => ts.resolveModuleName(name, file, options, host).resolvedModule;
  return find(from) || find(path.join(__dirname, "x.ts"));
}

host.resolveModuleNameLiterals = (names, from) =>
  names.map((name) => ({ resolvedModule: resolve(name.text, from) }));
const shims = ["svelte2tsx/svelte-shims-v4.d.ts", "svelte2tsx/svelte-jsx-v4.d.ts"].map(require.resolve);
const program = ts.createProgram([...files, ...shims], options, host);
const checker = program.getTypeChecker();

// --- what a call means ---

const inside = (file) => file.startsWith(`${root}/`) && !file.includes("/node_modules/");
const onDisk = (file) => (pages.has(file) ? file.slice(0, -".tsx".length) : file);

// Row, column and offset in the file on disk; null: nothing there.
function position(file, offset) {
  const page = pages.get(file);
  const text = page ? page.text : program.getSourceFile(file).text;
  const at = page ? page.back(offset) : offset;
  if (at === null || at < 0 || at > text.length) return null;
  const before = text.slice(0, at).split("\n");
  return [before.length - 1, before[before.length - 1].length, at];
}

function place(name) {
  const { fileName } = name.getSourceFile();
  if (!inside(fileName) || DECLARED.test(fileName)) return [];
  const at = position(fileName, name.getStart());
  return at ? [[path.relative(root, onDisk(fileName)), at[0]]] : null;
}

function bySignature(call, symbol, name) {
  const declaration = checker.getResolvedSignature(call)?.declaration;
  if (!declaration) {
    if (!symbol?.declarations?.length) return null;
    return checker.getTypeOfSymbolAtLocation(symbol, name).flags & ts.TypeFlags.Any ? null : [];
  }
  if (ts.isCallSignatureDeclaration(declaration) || ts.isConstructSignatureDeclaration(declaration)) return [];
  if (!ts.isFunctionTypeNode(declaration)) return place(nameOf(declaration));
  let parent = declaration.parent;
  while (parent && ts.isParenthesizedTypeNode(parent)) parent = parent.parent;
  return isProperty(parent) ? place(parent.name) : [];
}

// A page that a name imports is a component.
function componentOf(name) {
  const declaration = checker.getSymbolAtLocation(name)?.declarations?.[0];
  if (!declaration || !ts.isImportClause(declaration)) return null;
  const target = resolve(declaration.parent.moduleSpecifier.text, name.getSourceFile().fileName);
  if (!target || !pages.has(target.resolvedFileName)) return null;
  return [[path.relative(root, onDisk(target.resolvedFileName)), 0]];
}

function meaning(call, name) {
  const component = componentOf(name);
  if (component) return component;
  let symbol = checker.getSymbolAtLocation(name);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const functions = (symbol?.declarations || []).filter(isFunction);
  if (!functions.length) return bySignature(call, symbol, name);
  const found = functions.map((each) => place(each.name || nameOf(each)));
  return found.includes(null) ? null : found.flat();
}

function calledName(node) {
  let called = node.expression;
  while (ts.isParenthesizedExpression(called) || ts.isNonNullExpression(called)) called = called.expression;
  if (ts.isIdentifier(called)) return called;
  return ts.isPropertyAccessExpression(called) ? called.name : null;
}

// Whether the page has this call itself; code is also made of what is no call.
function isWritten(page, text, name, at) {
  if (page && (!page.text.startsWith(name.text, at) || page.text[at - 1] === "<")) return false;
  const next = text.slice(at + name.text.length).match(/^\s*(\?\.)?./);
  return Boolean(next) && "(<? ".includes(next[0].slice(-1));
}

const answer = {};
for (const file of files) {
  const source = program.getSourceFile(file);
  const page = pages.get(file);
  const text = page ? page.text : source.text;
  const calls = new Map();
  (function visit(node) {
    const isCall = ts.isCallExpression(node) || ts.isNewExpression(node);
    const name = isCall ? calledName(node) : page && ts.isIdentifier(node) ? node : null;
    const at = name && position(file, name.getStart(source));
    const key = at && `${at[0]}:${at[1]}`;
    if (at && isCall && isWritten(page, text, name, at[2])) {
      if (!calls.get(key)?.[3]) calls.set(key, [at[0], at[1], name.text, meaning(node, name)]);
    } else if (at && !isCall && text[at[2] - 1] === "<" && text.startsWith(name.text, at[2])) {
      const component = componentOf(name);
      if (component) calls.set(key, [at[0], at[1], name.text, component]);
    }
    ts.forEachChild(node, visit);
  })(source);
  answer[path.relative(root, onDisk(file))] = [...calls.values()];
}
process.stdout.write(JSON.stringify(answer));
