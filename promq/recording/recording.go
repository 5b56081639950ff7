package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"vllm-triage/promq/memstore"
)

// Limits of the engine, as Prometheus sets them by default.
const (
	lookbackDelta = 5 * time.Minute
	queryTimeout  = 2 * time.Minute
	maxSamples    = 50_000_000
)

// maxBytes bounds the files that are read into memory, in bytes.
const maxBytes = 512 << 20

// Recording is a set of recorded series behind a PromQL engine. It is safe for use by several goroutines.
type Recording struct {
	store  *memstore.Store
	engine *promql.Engine
	parser parser.Parser
}

// Open reads the recording in dir: a directory of TSDB blocks, or one block. It is not written to.
func Open(dir string) (*Recording, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open recording %s: no such directory", dir)
	case err != nil:
		return nil, fmt.Errorf("open recording: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("open recording %s: not a directory; give the directory that holds the TSDB blocks", dir)
	}
	r, err := OpenFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return r, nil
}

// OpenFS reads a recording from a file system, such as one embedded in the binary.
func OpenFS(fsys fs.FS) (*Recording, error) {
	dirs, err := blockDirs(fsys)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	if err := checkSize(fsys, dirs); err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	var series []memstore.Series
	for _, dir := range dirs {
		got, err := readBlock(fsys, dir)
		if err != nil {
			return nil, fmt.Errorf("open recording: %w", err)
		}
		series = append(series, got...)
	}
	return FromStore(memstore.New(series)), nil
}

// FromStore serves series that are already in memory.
func FromStore(s *memstore.Store) *Recording {
	p := parser.NewParser(parser.Options{})
	return &Recording{
		store:  s,
		parser: p,
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples:           maxSamples,
			Timeout:              queryTimeout,
			LookbackDelta:        lookbackDelta,
			EnableAtModifier:     true,
			EnableNegativeOffset: true,
			// The step of a subquery that names none: Prometheus takes its rule interval, 1 min by default.
			NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
			Parser:                   p,
		}),
	}
}

// Store returns the series of the recording.
func (r *Recording) Store() *memstore.Store { return r.store }

// Bounds returns the times of the first and the last sample, both zero if there is none.
func (r *Recording) Bounds() (first, last time.Time) { return r.store.Bounds() }

// Handler serves the Prometheus HTTP API (queries, series, labels, empty rules, build information) as a server would have
// answered at asOf: later samples do not exist. The zero time sets no limit.
func (r *Recording) Handler(asOf time.Time) http.Handler {
	return newAPI(r, asOf)
}

// blockDirs finds the blocks: fsys itself, or its sub-directories that hold a meta.json, in the order of their ULIDs.
func blockDirs(fsys fs.FS) ([]string, error) {
	if isBlock(fsys, ".") {
		return []string{"."}, nil
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && isBlock(fsys, e.Name()) {
			dirs = append(dirs, e.Name())
		}
	}
	if len(dirs) > 0 {
		return dirs, nil
	}
	for _, e := range entries {
		switch {
		case e.Name() == "wal" || e.Name() == "chunks_head":
			return nil, errors.New("no blocks, only a WAL: take a snapshot first (POST /api/v1/admin/tsdb/snapshot) and open that")
		case e.IsDir() && e.Name() == "tsdb":
			return nil, errors.New("no blocks here; open the tsdb directory inside it")
		}
	}
	return nil, errors.New("no blocks: expected sub-directories with meta.json, index and chunks")
}

func isBlock(fsys fs.FS, dir string) bool {
	info, err := fs.Stat(fsys, path.Join(dir, "meta.json"))
	return err == nil && !info.IsDir()
}

// checkSize refuses recordings that are not meant to be held in memory, before reading them.
func checkSize(fsys fs.FS, dirs []string) error {
	var total int64
	for _, dir := range dirs {
		err := fs.WalkDir(fsys, dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				total += info.Size()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if total > maxBytes {
		return fmt.Errorf("%d MiB of blocks is more than the %d MiB that are read into memory; cut the recording", total>>20, maxBytes>>20)
	}
	return nil
}
