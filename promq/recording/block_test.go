package recording_test

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
	"vllm-triage/promq/recording"
)

// writeBlock writes a block with the writers of the TSDB itself: each series in chunks of at most perChunk samples, each chunk
// file of at most segment bytes.
func writeBlock(t *testing.T, dir string, series []memstore.Series, perChunk int, segment int64) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"version":1}`), 0o600))
	cw, err := chunks.NewWriter(filepath.Join(dir, "chunks"), chunks.WithSegmentSize(segment))
	require.NoError(t, err)
	iw, err := index.NewWriter(t.Context(), filepath.Join(dir, "index"))
	require.NoError(t, err)

	var symbols []string
	for _, s := range series {
		s.Labels.Range(func(l labels.Label) { symbols = append(symbols, l.Name, l.Value) })
	}
	slices.Sort(symbols)
	for _, s := range slices.Compact(symbols) {
		require.NoError(t, iw.AddSymbol(s))
	}
	for i, s := range series {
		var metas []chunks.Meta
		for part := range slices.Chunk(s.Samples, perChunk) {
			var samples []chunks.Sample
			for i := range part {
				samples = append(samples, &part[i])
			}
			meta, err := chunks.ChunkFromSamples(samples)
			require.NoError(t, err)
			metas = append(metas, meta)
		}
		require.NoError(t, cw.WriteChunks(metas...))
		require.NoError(t, iw.AddSeries(storage.SeriesRef(i), s.Labels, metas...))
	}
	require.NoError(t, iw.Close())
	require.NoError(t, cw.Close())
}

// del marks samples of a metric as deleted.
func del(t *testing.T, dir, metric string, mint, maxt int64) {
	t.Helper()
	r, err := index.NewFileReader(filepath.Join(dir, "index"), index.DecodePostingsRaw)
	require.NoError(t, err)
	p, err := r.Postings(t.Context(), "__name__", metric)
	require.NoError(t, err)
	stones := tombstones.NewMemTombstones()
	for p.Next() {
		stones.AddInterval(p.At(), tombstones.Interval{Mint: mint, Maxt: maxt})
	}
	require.NoError(t, r.Close())
	_, err = tombstones.WriteFile(slog.New(slog.DiscardHandler), dir, stones)
	require.NoError(t, err)
}

func floats(at int64, step int64, vs ...float64) []memstore.Sample {
	var out []memstore.Sample
	for i, v := range vs {
		out = append(out, memstore.Sample{At: at + int64(i)*step, Value: v})
	}
	return out
}

func metric(name string, pairs ...string) labels.Labels {
	return labels.FromStrings(append([]string{"__name__", name}, pairs...)...)
}

// bits makes samples comparable to the last bit, the payload of a NaN included.
func bits(samples []memstore.Sample) [][2]uint64 {
	var out [][2]uint64
	for _, s := range samples {
		out = append(out, [2]uint64{uint64(s.At), math.Float64bits(s.Value)})
	}
	return out
}

func TestReadsWhatTheTSDBWrote(t *testing.T) {
	t.Parallel()
	stale := math.Float64frombits(value.StaleNaN)
	long := make([]float64, 1000)
	for i := range long {
		long[i] = float64(i*i%977) / 7
	}
	want := []memstore.Series{
		{Labels: metric("a", "pod", "x"), Samples: floats(1000, 5000, 1, math.NaN(), stale, math.Inf(1), math.Copysign(0, -1), 5)},
		{Labels: metric("b.utf8", "k8s.pod", "é\n"), Samples: floats(-20_000, 15_000, 1, 2, 3)},
		{Labels: metric("long"), Samples: floats(0, 5000, long...)},
	}
	dir := t.TempDir()
	writeBlock(t, filepath.Join(dir, "01BLOCK"), want, 120, 2000)
	segments, err := os.ReadDir(filepath.Join(dir, "01BLOCK", "chunks"))
	require.NoError(t, err)
	require.Greater(t, len(segments), 2, "several chunk files")

	r, err := recording.Open(dir)
	require.NoError(t, err)
	got := r.Store().Series()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Labels.String(), got[i].Labels.String())
		require.Equal(t, bits(want[i].Samples), bits(got[i].Samples), want[i].Labels)
	}
	first, last := r.Bounds()
	require.Equal(t, int64(-20_000), first.UnixMilli())
	require.Equal(t, int64(999*5000), last.UnixMilli())

	one, err := recording.Open(filepath.Join(dir, "01BLOCK"))
	require.NoError(t, err, "a block by itself")
	require.Equal(t, r.Store().Len(), one.Store().Len())
}

func TestHistogramsAreKept(t *testing.T) {
	t.Parallel()
	h := &histogram.FloatHistogram{
		Schema: 0, Count: 6, Sum: 12, PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []float64{2, 4},
	}
	dir := t.TempDir()
	writeBlock(t, dir, []memstore.Series{{Labels: metric("h"), Samples: []memstore.Sample{{At: 1000, Hist: h}, {At: 2000, Hist: h}}}}, 10, 1<<20)
	r, err := recording.Open(dir)
	require.NoError(t, err)
	got := r.Store().Series()[0].Samples
	require.Len(t, got, 2)
	require.True(t, got[1].Hist.Equals(h))
}

func TestBlocksAreMerged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := metric("a")
	writeBlock(t, filepath.Join(dir, "01"), []memstore.Series{{Labels: a, Samples: floats(10_000, 5000, 3, 4)}}, 10, 1<<20)
	writeBlock(t, filepath.Join(dir, "02"), []memstore.Series{
		{Labels: a, Samples: floats(0, 5000, 1, 2, 99)}, // The third is in the first block already.
		{Labels: metric("b"), Samples: floats(0, 5000, 7)},
	}, 10, 1<<20)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "wal"), 0o755), "a WAL beside blocks is passed over")
	r, err := recording.Open(dir)
	require.NoError(t, err)
	require.Equal(t, 2, r.Store().Len())
	require.Equal(t, bits(floats(0, 5000, 1, 2, 3, 4)), bits(r.Store().Series()[0].Samples))
}

func TestDeletedSamplesStayDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeBlock(t, dir, []memstore.Series{
		{Labels: metric("a"), Samples: floats(0, 1000, 0, 1, 2, 3, 4)},
		{Labels: metric("b"), Samples: floats(0, 1000, 0, 1, 2, 3, 4)},
	}, 3, 1<<20)
	del(t, dir, "a", 1000, 3000)
	r, err := recording.Open(dir)
	require.NoError(t, err)
	require.Equal(t, bits([]memstore.Sample{{At: 0, Value: 0}, {At: 4000, Value: 4}}), bits(r.Store().Series()[0].Samples))
	require.Len(t, r.Store().Series()[1].Samples, 5)
}
