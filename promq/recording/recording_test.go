package recording_test

import (
	"crypto/sha256"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/promq"
	"vllm-triage/promq/recording"
)

const healthy = "testdata/healthy"

func open(tb testing.TB) *recording.Recording {
	tb.Helper()
	r, err := recording.Open(healthy)
	require.NoError(tb, err)
	return r
}

// digest sums up every file below dir with its mode and time.
func digest(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		info, err := d.Info()
		sum := sha256.Sum256(raw)
		out[path] = string(sum[:]) + info.Mode().String() + info.ModTime().String()
		return err
	}))
	return out
}

func TestOpenReadsEverythingAndChangesNothing(t *testing.T) {
	t.Parallel()
	before := digest(t, healthy)
	r := open(t)
	require.Equal(t, before, digest(t, healthy))

	// What the recording server wrote about the block is the independent truth.
	files, err := filepath.Glob(healthy + "/*/meta.json")
	require.NoError(t, err)
	require.Len(t, files, 1)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var meta struct {
		MinTime, MaxTime int64
		Stats            struct{ NumSamples, NumSeries int }
	}
	require.NoError(t, json.Unmarshal(raw, &meta))
	samples := 0
	for _, s := range r.Store().Series() {
		samples += len(s.Samples)
	}
	require.Equal(t, meta.Stats.NumSamples, samples)
	require.Equal(t, meta.Stats.NumSeries, r.Store().Len())
	first, last := r.Bounds()
	require.Equal(t, meta.MinTime, first.UnixMilli())
	require.Equal(t, meta.MaxTime, last.UnixMilli()+1, "a block ends before its maxTime")
}

func TestOpenFS(t *testing.T) {
	t.Parallel()
	r, err := recording.OpenFS(os.DirFS(healthy))
	require.NoError(t, err)
	require.Equal(t, open(t).Store().Len(), r.Store().Len())
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := recording.Open(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "no such directory")
	_, err = recording.Open(file)
	require.ErrorContains(t, err, "not a directory")
	_, err = recording.Open(t.TempDir())
	require.ErrorContains(t, err, "no blocks")

	block := func(files ...string) fstest.MapFS {
		m := fstest.MapFS{}
		src := os.DirFS(healthy)
		require.NoError(t, fs.WalkDir(src, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := fs.ReadFile(src, path)
			_, name, _ := strings.Cut(path, "/")
			m["01B/"+name] = &fstest.MapFile{Data: raw}
			return err
		}))
		for _, f := range files {
			delete(m, f)
		}
		return m
	}
	with := func(m fstest.MapFS, name, data string) fstest.MapFS {
		m[name] = &fstest.MapFile{Data: []byte(data)}
		return m
	}
	for name, tt := range map[string]struct {
		fsys fstest.MapFS
		want string
	}{
		"only a wal":         {fstest.MapFS{"wal/000001": {}, "chunks_head/000001": {}}, "take a snapshot first"},
		"incident directory": {fstest.MapFS{"tsdb/01B/meta.json": {}, "recording.json": {}}, "open the tsdb directory"},
		"no index":           {block("01B/index"), "01B/index"},
		"no chunks":          {block("01B/chunks/000001"), "01B/chunks"},
		"empty index":        {with(block(), "01B/index", ""), "read 01B/index: corrupt"},
		"empty chunk file":   {with(block(), "01B/chunks/000001", ""), "read 01B/chunks/000001: corrupt"},
		"bad meta":           {with(block(), "01B/meta.json", "{"), "read 01B/meta.json: corrupt"},
		"newer block":        {with(block(), "01B/meta.json", `{"version":2}`), "block version 2 is not supported"},
		"bad tombstones":     {with(block(), "01B/tombstones", "xxxxxxxxxxxx"), "read 01B/tombstones: corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := recording.OpenFS(tt.fsys)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err = recording.OpenFS(block("01B/tombstones"))
	require.NoError(t, err, "a block without deletions may lack the file")
}

// blockFiles returns the files of the healthy recording by path.
func blockFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	src := os.DirFS(healthy)
	files := map[string][]byte{}
	require.NoError(tb, fs.WalkDir(src, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(src, path)
		return err
	}))
	return files
}

// openWith opens the recording with one file replaced.
func openWith(files map[string][]byte, path string, data []byte) error {
	m := fstest.MapFS{}
	for p, raw := range files {
		m[p] = &fstest.MapFile{Data: raw}
	}
	m[path] = &fstest.MapFile{Data: data}
	_, err := recording.OpenFS(m)
	return err
}

// Every cut of a file must be an error that names the block, and a flipped byte an error or harmless; never a panic.
func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	const cuts = 15
	files := blockFiles(t)
	for path, raw := range files {
		block, _, _ := strings.Cut(path, "/")
		for i := range cuts {
			require.ErrorContains(t, openWith(files, path, raw[:len(raw)*i/cuts]), block, "%s cut", path)
			flipped := append([]byte(nil), raw...)
			flipped[(len(raw)-1)*i/cuts] ^= 0xff
			if err := openWith(files, path, flipped); err != nil {
				require.ErrorContains(t, err, block)
			}
		}
	}
}

// FuzzDamagedBlock overwrites a piece of a file of a real block.
func FuzzDamagedBlock(f *testing.F) {
	files := blockFiles(f)
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	f.Add(uint8(0), uint(0), []byte{0, 0, 0, 0})
	f.Add(uint8(1), uint(5), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Add(uint8(2), uint(3), []byte("9"))
	f.Add(uint8(3), uint(4), []byte{2})
	f.Fuzz(func(_ *testing.T, which uint8, at uint, piece []byte) {
		path := paths[int(which)%len(paths)]
		damaged := append([]byte(nil), files[path]...)
		copy(damaged[at%uint(len(damaged)):], piece)
		_ = openWith(files, path, damaged) // It must return.
	})
}

func TestStart(t *testing.T) {
	t.Parallel()
	r := open(t)
	url, stop, err := r.Start(time.Time{})
	require.NoError(t, err)
	defer stop()
	c, err := promq.NewClient(promq.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	version, err := c.BuildInfo(t.Context())
	require.NoError(t, err)
	require.Equal(t, "recording", version)
	stop()
	_, err = c.BuildInfo(t.Context())
	require.True(t, promq.IsUnavailable(err), err)
}
