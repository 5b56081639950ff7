package runbook

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"
)

//go:embed en/*.md ko/*.md metrics/*.txt signals/*.txt
var embedded embed.FS

// Embedded is the file tree of the shipped pages, the base for an Overlay.
func Embedded() fs.FS { return embedded }

// Default is the book of the shipped pages. It panics when they are broken, which a test excludes.
var Default = sync.OnceValue(func() *Book {
	b, err := Load(embedded)
	if err != nil {
		panic(fmt.Sprintf("embedded runbooks: %v", err))
	}
	return b
})

// Get returns a shipped page; see Book.Get.
func Get(lang, id string) (*Page, bool) { return Default().Get(lang, id) }

// IDs lists the shipped pages; see Book.IDs.
func IDs() []string { return Default().IDs() }
