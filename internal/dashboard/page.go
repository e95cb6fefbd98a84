package dashboard

import (
	"embed"
	"net/http"
	"path"
)

// files are the page: they are served as they are.
//
//go:embed page
var files embed.FS

// kinds are those of the files, which are told to a browser that must not guess.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// servePage serves the files of the page. They are no secret.
func servePage(w http.ResponseWriter, r *http.Request) {
	name := path.Clean(r.URL.Path)
	if name == "/" {
		name = "/index.html"
	}
	content, err := files.ReadFile("page" + name)
	kind, known := kinds[path.Ext(name)]
	if err != nil || !known {
		refuse(w, http.StatusNotFound, "there is nothing here")
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) //nolint:gosec // one of the files that this program brings
}
