// Asks go/types, the type checker of gopls, what each call of a package means: `go run go.go folder`.
// Prints what python.py prints.
package main

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root, _ := filepath.EvalSymlinks(os.Args[1])
	out := map[string][]interface{}{}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "source", nil)
	filepath.Walk(root, func(dir string, fi os.FileInfo, err error) error {
		if err != nil || !fi.IsDir() {
			return nil
		}
		if fi.Name() == "testdata" || strings.HasPrefix(fi.Name(), "_") {
			return filepath.SkipDir
		}
		bp, err := build.ImportDir(dir, 0)
		if err != nil || len(bp.GoFiles) == 0 {
			return nil
		}
		var files []*ast.File
		for _, f := range bp.GoFiles {
			af, err := parser.ParseFile(fset, filepath.Join(dir, f), nil, 0)
			if err == nil {
				files = append(files, af)
			}
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		path := bp.ImportPath
		conf := types.Config{Importer: imp, Error: func(error) {}, FakeImportC: true}
		conf.Check(path, fset, files, info)
		for _, af := range files {
			rel, _ := filepath.Rel(root, fset.Position(af.Pos()).Filename)
			sites := []interface{}{}
			src, _ := os.ReadFile(fset.Position(af.Pos()).Filename)
			lines := strings.Split(string(src), "\n")
			ast.Inspect(af, func(nd ast.Node) bool {
				c, ok := nd.(*ast.CallExpr)
				if !ok {
					return true
				}
				fun := c.Fun
				for {
					if p, ok := fun.(*ast.ParenExpr); ok {
						fun = p.X
					} else if p, ok := fun.(*ast.IndexExpr); ok {
						fun = p.X
					} else {
						break
					}
				}
				var id *ast.Ident
				switch x := fun.(type) {
				case *ast.Ident:
					id = x
				case *ast.SelectorExpr:
					id = x.Sel
				}
				if id == nil {
					return true
				}
				p := fset.Position(id.Pos())
				col := len([]rune(lines[p.Line-1][:p.Column-1]))
				var truth interface{}
				obj := info.Uses[id]
				if f, ok := obj.(*types.Func); ok {
					t := []interface{}{}
					q := fset.Position(f.Pos())
					fn, err := filepath.EvalSymlinks(q.Filename)
					if err == nil && strings.HasPrefix(fn, root+"/") {
						r, _ := filepath.Rel(root, fn)
						t = append(t, []interface{}{r, q.Line - 1})
					}
					truth = t
				} else if obj != nil {
					truth = []interface{}{}
				}
				sites = append(sites, []interface{}{p.Line - 1, col, id.Name, truth})
				return true
			})
			out[rel] = sites
		}
		return nil
	})
	b, _ := json.Marshal(out)
	os.Stdout.Write(b)
}
