package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Limits of what is looked at, so that a directory named by mistake does not keep the disk busy.
const (
	maxFiles    = 5000
	maxFileSize = 16 << 20
)

// Fingerprint names the content of files, and of directories with everything below them. Symbolic links are followed to
// their content: Kubernetes changes a mounted ConfigMap by moving a link. What cannot be read counts as such.
func Fingerprint(paths ...string) string {
	sum := sha256.New()
	left := maxFiles
	for _, path := range paths {
		if path == "" {
			continue
		}
		fmt.Fprintf(sum, "path %q\n", path)
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			fmt.Fprintf(sum, "error\n")
			continue
		}
		_ = filepath.WalkDir(resolved, func(name string, d fs.DirEntry, err error) error { // Errors are part of the sum.
			left--
			if left < 0 {
				return filepath.SkipAll
			}
			relative, _ := filepath.Rel(resolved, name)
			fmt.Fprintf(sum, "name %q error %t\n", relative, err != nil)
			if err == nil && !d.IsDir() {
				addContent(sum, name)
			}
			return nil
		})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func addContent(sum io.Writer, name string) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return // A link to a directory, a socket: not something that is read.
	}
	f, err := os.Open(name)
	if err != nil {
		fmt.Fprintf(sum, "unreadable\n")
		return
	}
	defer f.Close() //nolint:errcheck // Only read.
	n, _ := io.Copy(sum, io.LimitReader(f, maxFileSize))
	fmt.Fprintf(sum, "\nsize %d\n", n)
}
