package fleet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/stretchr/testify/require"

	"vllm-triage/promq/memstore"
)

// blockID is the name of the only block; Prometheus wants a ULID.
const blockID = "01JDM0000000000000000000FT"

// perChunk is how many samples Prometheus puts into a chunk.
const perChunk = 120

// writeBlock writes series as a TSDB block that a real Prometheus serves. Each series gets chunks of its own on disk,
// although alike series share their samples.
func writeBlock(t testing.TB, dir string, series []memstore.Series) (samples int) {
	t.Helper()
	slices.SortFunc(series, func(a, b memstore.Series) int { return labels.Compare(a.Labels, b.Labels) })
	block := filepath.Join(dir, blockID)
	require.NoError(t, os.MkdirAll(block, 0o700))

	ix, err := index.NewWriter(t.Context(), filepath.Join(block, "index"))
	require.NoError(t, err)
	for _, s := range symbols(series) {
		require.NoError(t, ix.AddSymbol(s))
	}
	data, err := chunks.NewWriter(filepath.Join(block, "chunks"))
	require.NoError(t, err)

	encoded := map[*memstore.Sample][]chunks.Meta{}
	mint, maxt := series[0].Samples[0].At, series[0].Samples[0].At
	for i, one := range series {
		key := &one.Samples[0]
		if _, ok := encoded[key]; !ok {
			encoded[key] = encode(t, one.Samples)
		}
		metas := slices.Clone(encoded[key])
		require.NoError(t, data.WriteChunks(metas...))
		require.NoError(t, ix.AddSeries(storage.SeriesRef(i), one.Labels, metas...))
		mint, maxt = min(mint, metas[0].MinTime), max(maxt, metas[len(metas)-1].MaxTime)
		samples += len(one.Samples)
	}
	require.NoError(t, data.Close())
	require.NoError(t, ix.Close())
	meta := fmt.Sprintf(`{"ulid":%q,"minTime":%d,"maxTime":%d,"stats":{"numSamples":%d,"numSeries":%d},"compaction":{"level":1,"sources":[%q]},"version":1}`,
		blockID, mint, maxt+1, samples, len(series), blockID)
	require.True(t, json.Valid([]byte(meta)))
	require.NoError(t, os.WriteFile(filepath.Join(block, "meta.json"), []byte(meta), 0o600))
	return samples
}

func symbols(series []memstore.Series) []string {
	seen := map[string]struct{}{"": {}}
	for _, one := range series {
		one.Labels.Range(func(l labels.Label) {
			seen[l.Name] = struct{}{}
			seen[l.Value] = struct{}{}
		})
	}
	out := make([]string, 0, len(seen))
	for s := range seen {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func encode(t testing.TB, samples []memstore.Sample) []chunks.Meta {
	t.Helper()
	var out []chunks.Meta
	for part := range slices.Chunk(samples, perChunk) {
		c := chunkenc.NewXORChunk()
		app, err := c.Appender()
		require.NoError(t, err)
		for _, x := range part {
			app.Append(0, x.At, x.Value)
		}
		out = append(out, chunks.Meta{Chunk: c, MinTime: part[0].At, MaxTime: part[len(part)-1].At})
	}
	return out
}
