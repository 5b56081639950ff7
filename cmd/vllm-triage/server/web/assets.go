package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

//go:embed assets
var assets embed.FS

// Assets is what pages load beside themselves: the style sheet and the icon. It is served under AssetsPath. Pages ask for
// a file with a hash of its content, so it may be cached for ever.
func Assets() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(fmt.Sprintf("embedded assets: %v", err)) // The name is a valid path.
	}
	return sub
}

// AssetsPath is where Assets is served, below Site.Prefix.
const AssetsPath = "/assets/"

// assetVersions maps the files to a hash of their content.
var assetVersions = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := assets.ReadFile(name)
		sum := sha256.Sum256(data)
		out[path.Base(name)] = hex.EncodeToString(sum[:6])
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("embedded assets: %v", err))
	}
	return out
})
