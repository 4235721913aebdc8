// Asks the TypeScript compiler what each call of a package means: `node typescript.cjs folder`.
// Prints what python.py prints. Calls that lead into the compiled .d.ts of the package are unknown.
const ts = require("typescript");
const fs = require("fs");
const path = require("path");
const { DECLARED, addPaths, isFunction, isProperty, nameOf } = require("./declarations.cjs");

const root = fs.realpathSync(process.argv[2]);
const files = [];
const paths = {};
(function walk(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const each = path.join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules") walk(each);
    else if (/^(ts|js)config.*\.json$/.test(entry.name)) addPaths(paths, each);
    else if (/\.(ts|tsx|mts)$/.test(each) && !DECLARED.test(each)) files.push(each);
  }
})(root);

const program = ts.createProgram(files, {
  allowImportingTsExtensions: true,
  customConditions: ["@zod/source"],
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
});
const checker = program.getTypeChecker();
const inside = (file) => file.startsWith(root + "/") && !file.includes("/node_modules/");

function place(name) {
  const source = name.getSourceFile();
  if (!inside(source.fileName) || DECLARED.test(source.fileName)) return [];
  const at = source.getLineAndCharacterOfPosition(name.getStart(source));
  return [[source.fileName.slice(root.length + 1), at.line]];
}

function bySignature(call, symbol, name) {
  const declaration = checker.getResolvedSignature(call)?.declaration;
  if (!declaration) {
    if (!symbol?.declarations?.length) return null;
    return checker.getTypeOfSymbolAtLocation(symbol, name).flags & ts.TypeFlags.Any ? null : [];
  }
  if (isCompiled([declaration])) return null;
  if (ts.isCallSignatureDeclaration(declaration) || ts.isConstructSignatureDeclaration(declaration)) return [];
  if (!ts.isFunctionTypeNode(declaration)) return place(nameOf(declaration));
  // A call of a value of a function type means the property that has the type, if there is one.
  let parent = declaration.parent;
  while (parent && ts.isParenthesizedTypeNode(parent)) parent = parent.parent;
  return isProperty(parent) ? place(parent.name) : [];
}

const isCompiled = (declarations) =>
  declarations.some((each) => inside(each.getSourceFile().fileName) && DECLARED.test(each.getSourceFile().fileName));

function meaning(call, name) {
  let symbol = checker.getSymbolAtLocation(name);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declarations = symbol?.declarations || [];
  if (isCompiled(declarations)) return null;
  const functions = declarations.filter(isFunction);
  if (functions.length) return functions.flatMap((each) => place(each.name || nameOf(each)));
  return bySignature(call, symbol, name);
}

const answer = {};
for (const file of files) {
  const source = program.getSourceFile(file);
  const calls = [];
  (function visit(node) {
    const isElement = ts.isJsxOpeningElement(node) || ts.isJsxSelfClosingElement(node);
    const isIntrinsic = isElement && /^[a-z][^.]*$/.test(node.tagName.getText());
    if ((isElement && !isIntrinsic) || ts.isCallExpression(node) || ts.isNewExpression(node)) {
      let called = isElement ? node.tagName : node.expression;
      while (ts.isParenthesizedExpression(called) || ts.isNonNullExpression(called)) called = called.expression;
      const name = ts.isIdentifier(called) ? called : ts.isPropertyAccessExpression(called) ? called.name : null;
      if (name) {
        const at = source.getLineAndCharacterOfPosition(name.getStart(source));
        calls.push([at.line, at.character, name.text, meaning(node, name)]);
      }
    }
    ts.forEachChild(node, visit);
  })(source);
  answer[path.relative(root, file)] = calls;
}
process.stdout.write(JSON.stringify(answer));
