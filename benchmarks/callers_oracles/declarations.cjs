// What both oracles that ask the TypeScript compiler share.
const ts = require("typescript");
const path = require("path");

const DECLARED = /\.d\.[mc]?ts$/;

// Adds the aliases of modules of a configuration beside the code: name → places.
function addPaths(paths, file) {
  const { config, error } = ts.readConfigFile(file, ts.sys.readFile);
  if (error) return;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, path.dirname(file));
  const base = options.baseUrl || options.pathsBasePath || path.dirname(file);
  for (const [name, places] of Object.entries(options.paths || {})) {
    paths[name] = [...(paths[name] || []), ...places.map((each) => path.resolve(base, each))];
  }
}

const isProperty = (node) => ts.isPropertySignature(node) || ts.isPropertyDeclaration(node);

// The name of a declaration, or of what holds it.
function nameOf(declaration) {
  if (ts.isConstructorDeclaration(declaration)) return declaration.parent.name || declaration.parent;
  if (declaration.name) return declaration.name;
  let parent = declaration.parent;
  while (parent && (ts.isParenthesizedExpression(parent) || ts.isAsExpression(parent))) parent = parent.parent;
  if (parent && (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || isProperty(parent))) {
    return parent.name;
  }
  if (parent && ts.isBinaryExpression(parent) && ts.isPropertyAccessExpression(parent.left)) return parent.left.name;
  return declaration;
}

function isFunction(each) {
  if (ts.isFunctionLike(each) || ts.isClassLike(each)) return true;
  const holds = ts.isVariableDeclaration(each) || ts.isPropertyDeclaration(each) || ts.isPropertyAssignment(each);
  return holds && each.initializer && (ts.isFunctionLike(each.initializer) || ts.isClassLike(each.initializer));
}

module.exports = { DECLARED, addPaths, isFunction, isProperty, nameOf };
