package robust

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// phases is how many different calm replicas a fleet has: the same calm, begun at other moments.
const phases = 8

// Fleet is a recorded incident on one server among many that stay well, scraped every so often, after calm time. Series
// of alike replicas share their samples, which must not be changed. The *_created twins of counters are left out, as most
// installations do.
func Fleet(r *eval.Recording, healthy int, calm, scrape time.Duration) []memstore.Series {
	sick := memstore.New(drop(withHistory(r, calm).Series())).Thin(scrape)
	first, last := sick.Bounds()
	from := modelTarget(r)
	base, length := calmSpan(r)
	template := memstore.New(drop(r.Data.Store().Series()))
	alike := make([][]memstore.Series, phases)
	for p := range alike {
		shift := int64(p) * length / phases / tick.Milliseconds() * tick.Milliseconds()
		var segments []segment
		for t := first.UnixMilli() - shift; t <= last.UnixMilli(); t += length {
			segments = append(segments, segment{t, t + length, base})
		}
		calm := template.Apply(func(one memstore.Series) []memstore.Series {
			if target(one.Labels) != from || isAlert(nameOf(one.Labels)) {
				return nil
			}
			return []memstore.Series{retime(one, segments)}
		})
		alike[p] = calm.Cut(first, last).Thin(scrape).Series()
	}
	out := append([]memstore.Series{}, sick.Series()...)
	for i := range healthy {
		for _, one := range alike[i%phases] {
			l := labels.NewBuilder(one.Labels).Set("instance", fmt.Sprintf("10.43.%d.%d:8000", i/200, 20+i%200)).
				Set("pod", fmt.Sprintf("%s-%d", one.Labels.Get("pod"), i+1)).Labels()
			out = append(out, memstore.Series{Labels: l, Samples: one.Samples})
		}
	}
	return out
}

func drop(all []memstore.Series) []memstore.Series {
	out := make([]memstore.Series, 0, len(all))
	for _, one := range all {
		if !strings.HasSuffix(nameOf(one.Labels), "_created") {
			out = append(out, one)
		}
	}
	return out
}
