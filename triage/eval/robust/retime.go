package robust

import (
	"slices"
	"time"

	"vllm-triage/promq/memstore"
	"vllm-triage/triage/eval"
)

// segment shows a piece of a recording at another time: source times from src on, at [from, to). Milliseconds.
type segment struct{ from, to, src int64 }

// rounding is the relative difference below which a counter's fall comes from adding floats.
const rounding = 1e-9

// retime builds series out of pieces of themselves. Gauges repeat, counters go on growing from piece to piece, and values
// that are moments move along. A counter that starts anew inside a piece starts anew.
func retime(one memstore.Series, segments []segment) memstore.Series {
	name := nameOf(one.Labels)
	counter, moment := isCounter(name), name == "ALERTS_FOR_STATE" || name == "vllm:lora_requests_info"
	out := memstore.Series{Labels: one.Labels}
	last, begun := 0.0, false
	for _, seg := range segments {
		offset, first := 0.0, true
		if n := len(out.Samples); n > 0 && !starts(one.Samples, seg) {
			// A server would have said that the series ended, else queries look back five minutes.
			if end := out.Samples[n-1]; !end.IsStale() {
				out.Samples = append(out.Samples, memstore.StaleAt(end.At+tick.Milliseconds()))
			}
		}
		prev, havePrev := 0.0, false
		for i := range one.Samples {
			x := one.Samples[i]
			if x.At < seg.src {
				if !x.IsStale() {
					prev, havePrev = x.Value, true
				}
				continue
			}
			if x.At >= seg.src+seg.to-seg.from {
				break
			}
			x.At += seg.from - seg.src
			if !x.IsStale() {
				v := x.Value
				switch {
				case counter:
					if first && begun {
						offset = last - v
						if havePrev && prev <= v {
							offset = last - prev
						}
					} else if havePrev && v < prev*(1-rounding) {
						offset = 0
					}
					first = false
					x.Value += offset
					if begun && x.Value < last && last-x.Value < rounding*last {
						x.Value = last // A sum's last bits, not a reset.
					}
					last, begun = x.Value, true
				case moment:
					x.Value += float64(seg.from-seg.src) / 1000
				}
				prev, havePrev = v, true
			}
			out.Samples = append(out.Samples, x)
		}
	}
	return out
}

// starts says that a series has samples at the start of a piece.
func starts(samples []memstore.Sample, seg segment) bool {
	return slices.ContainsFunc(samples, func(x memstore.Sample) bool {
		return x.At >= seg.src && x.At < min(seg.src+3*tick.Milliseconds(), seg.src+seg.to-seg.from) && !x.IsStale()
	})
}

func retimeAll(s *memstore.Store, segments []segment) *memstore.Store {
	return s.Apply(func(one memstore.Series) []memstore.Series { return []memstore.Series{retime(one, segments)} })
}

// tick is the grid on which pieces are cut, so that the scrapes keep their distance; the recordings' scrape interval.
const tick = 5 * time.Second

// calmSpan is the part of a recording before the fault: its first moment and its length in milliseconds.
func calmSpan(r *eval.Recording) (from, length int64) {
	first, _ := r.Data.Bounds()
	from = first.Add(tick).UnixMilli()
	length = r.FaultStart.Add(-time.Second).UnixMilli() - from
	return from, length / tick.Milliseconds() * tick.Milliseconds()
}

// looped repeats the calm before the fault, backwards from a moment for a time.
func looped(r *eval.Recording, until int64, back time.Duration) []segment {
	from, length := calmSpan(r)
	var out []segment
	for to := until; to > until-back.Milliseconds(); to -= length {
		n := min(length, to-(until-back.Milliseconds()))
		out = append(out, segment{to - n, to, from + length - n})
	}
	slices.Reverse(out)
	return out
}

// withHistory puts calm time before a recording.
func withHistory(r *eval.Recording, back time.Duration) *memstore.Store {
	from, _ := calmSpan(r)
	_, last := r.Data.Bounds()
	return retimeAll(r.Data.Store(), append(looped(r, from, back), segment{from, last.UnixMilli() + 1, from}))
}

// withEarlierIncident puts the same incident before a recording, some time ago, with calm time before and after.
func withEarlierIncident(r *eval.Recording, ago time.Duration) *memstore.Store {
	from, _ := calmSpan(r)
	_, last := r.Data.Bounds()
	fault, length := r.FaultStart.UnixMilli(), r.FaultEnd.Sub(r.FaultStart).Milliseconds()
	start := from - ago.Milliseconds()
	segments := looped(r, start, 20*time.Minute)
	segments = append(segments, segment{start, start + length, fault})
	segments = append(segments, looped(r, from, ago-time.Duration(length)*time.Millisecond)...)
	return retimeAll(r.Data.Store(), append(segments, segment{from, last.UnixMilli() + 1, from}))
}

// prolonged repeats the second half of the fault, so that it lasts longer.
func prolonged(r *eval.Recording, by time.Duration) *memstore.Store {
	first, _ := r.Data.Bounds()
	end := r.FaultEnd.UnixMilli()
	half := r.FaultEnd.Sub(r.FaultStart).Milliseconds() / 2
	half = half / tick.Milliseconds() * tick.Milliseconds()
	segments := []segment{{first.UnixMilli(), end, first.UnixMilli()}}
	for t := end; t < end+by.Milliseconds(); t += half {
		segments = append(segments, segment{t, t + half, end - half})
	}
	return retimeAll(r.Data.Store(), segments)
}

// longFault is a fault that goes on, after calm time, without the alerts that were recorded.
func longFault(r *eval.Recording, by, calm time.Duration) *memstore.Store {
	long := prolonged(r, by).Drop("ALERTS", "ALERTS_FOR_STATE")
	if calm == 0 {
		return long
	}
	from, _ := calmSpan(r)
	_, last := long.Bounds()
	return retimeAll(long, append(looped(r, from, calm), segment{from, last.UnixMilli() + 1, from}))
}

// recovered follows a recording with calm time.
func recovered(r *eval.Recording, after time.Duration) *memstore.Store {
	first, last := r.Data.Bounds()
	end := last.UnixMilli() + 1
	segments := []segment{{first.UnixMilli(), end, first.UnixMilli()}}
	from, length := calmSpan(r)
	for t := end; t < end+after.Milliseconds(); t += length {
		segments = append(segments, segment{t, t + length, from})
	}
	return retimeAll(r.Data.Store(), segments)
}
