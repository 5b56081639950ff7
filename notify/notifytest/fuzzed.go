package notifytest

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"vllm-triage/triage"
)

// Fuzzed builds a report out of arbitrary bytes: every text, number and list length in it is the fuzzer's choice.
func Fuzzed(data []byte) triage.Report {
	s := &stream{data: data}
	r := triage.Report{
		Verdict:     triage.Verdict(s.pick("cause_found", "inconclusive", "no_bottleneck", s.word())),
		GeneratedAt: s.time(),
		Incident: triage.IncidentInfo{
			ID: s.word(), GroupKey: s.word(), Status: s.pick("firing", "resolved", "adhoc", s.word()),
			Scope:     triage.Scope{Model: s.word(), Namespace: s.word(), Instance: s.word(), Pod: s.word()},
			ScopeNote: s.text(), Onset: s.time(), OnsetUncertaintyMS: s.int64(),
			Window: triage.Span{Start: s.time(), End: s.time()}, Replicas: int(s.byte()),
			Truncated: int(s.byte()), RunbookURL: s.word(), ExternalURL: s.word(),
		},
		RunnerUp: s.text(),
		VLLM:     triage.VersionRange{Text: s.word()},
		Queries:  int(s.byte()), QueryMS: s.int64(),
	}
	if s.byte()%2 == 0 {
		r.Incident.Baseline = &triage.Span{Start: s.time(), End: s.time()}
	}
	for range s.count() {
		r.Incident.Alerts = append(r.Incident.Alerts, triage.Alert{
			Fingerprint: s.word(), Name: s.word(), Status: s.pick("firing", "resolved", s.word()),
			Labels: map[string]string{"severity": s.pick("critical", s.word())}, StartsAt: s.time(), EndsAt: s.time(),
		})
	}
	for range s.count() {
		r.Bottlenecks = append(r.Bottlenecks, s.hypothesis())
	}
	for range s.count() {
		r.Triggers = append(r.Triggers, s.hypothesis())
	}
	for range s.count() {
		r.Chain = append(r.Chain, triage.ChainLink{ID: s.word(), Kind: s.pick("trigger", "bottleneck", s.word()), Title: s.word(), Since: s.time()})
		r.RuledOut = append(r.RuledOut, triage.RuledOut{ID: s.word(), Title: s.word(), Why: s.word(), Reason: s.text()})
		r.NotChecked = append(r.NotChecked, triage.RuledOut{ID: s.word(), Title: s.word(), Why: s.word()})
		r.Missing = append(r.Missing, triage.Missing{Signal: s.word(), State: triage.State(s.pick("absent", s.word())), Why: s.word()})
		r.Notes = append(r.Notes, s.text())
		r.Impact.Lines = append(r.Impact.Lines, s.text())
		r.Panels = append(r.Panels, triage.Panel{
			Signal: s.word(), Title: s.word(), Unit: s.unit(), Role: s.pick("alert", s.word()),
			Start: s.time(), StepMS: s.int64(), Values: s.values(),
		})
		r.QueryLog = append(r.QueryLog, triage.QueryRecord{ID: s.word(), Query: s.word(), Outcome: s.word(), Error: s.word()})
	}
	if s.byte()%2 == 0 {
		r.Inconclusive = &triage.Blocked{Text: s.text(), Query: s.word()}
	}
	return r
}

// stream hands out pieces of the fuzzer's bytes; when they run out it hands out zeroes.
type stream struct {
	data []byte
	long int // Bytes of long words so far; a few of them find what there is to find.
}

func (s *stream) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *stream) uint64() uint64 {
	var b [8]byte
	for i := range b {
		b[i] = s.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (s *stream) int64() int64 {
	return int64(s.uint64()) //nolint:gosec // Every bit pattern is wanted.
}

// count is a list length: mostly small, sometimes a hundred.
func (s *stream) count() int {
	n := int(s.byte())
	if n == 255 {
		return 30
	}
	return n % 5
}

// word takes up to 255 bytes; a first byte of 255 repeats a short word until it is longer than any limit.
func (s *stream) word() string {
	n := int(s.byte())
	long := n == 255
	if long {
		n = int(s.byte()) % 8
	}
	n = min(n, len(s.data))
	w := string(s.data[:n])
	s.data = s.data[n:]
	if long && w != "" && s.long < 1<<20 {
		w = strings.Repeat(w, 12_000/len(w)+1)
		s.long += len(w)
	}
	return w
}

func (s *stream) pick(choices ...string) string { return choices[int(s.byte())%len(choices)] }

func (s *stream) number() float64 {
	switch s.byte() % 8 {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return math.Float64frombits(s.uint64())
	default:
		return float64(s.byte()) / 7
	}
}

func (s *stream) numberOrNil() *float64 {
	if s.byte()%4 == 0 {
		return nil
	}
	v := s.number()
	return &v
}

func (s *stream) time() time.Time {
	switch s.byte() % 4 {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(int64(s.uint64()%(1<<40)), 0)
	default:
		return Now().Add(time.Duration(s.byte()) * time.Second)
	}
}

func (s *stream) unit() triage.Unit {
	return triage.Unit(s.pick("seconds", "ratio", "tokens_per_second", "bytes", "timestamp", "times", "count", s.word()))
}

func (s *stream) text() triage.Text {
	return triage.Text{Text: s.word(), Key: s.word(), Args: map[string]triage.Arg{s.word(): {Number: s.numberOrNil(), Unit: s.unit(), Word: s.word()}}}
}

func (s *stream) values() []*float64 {
	var out []*float64
	for range s.count() * 8 {
		out = append(out, s.numberOrNil())
	}
	return out
}

func (s *stream) hypothesis() triage.Hypothesis {
	h := triage.Hypothesis{
		ID: s.pick("kv_cache_exhaustion", "healthy", "none", "longer_outputs", s.word()), Title: s.word(),
		Probability: s.number(), Since: s.time(),
	}
	for range s.count() {
		h.Where = append(h.Where, triage.Place{Model: s.word(), Instance: s.word(), Engine: s.word(), Pod: s.word()})
	}
	for range s.count() {
		h.Evidence = append(h.Evidence, triage.Evidence{
			Signal: s.word(), Text: s.text(), Unit: s.unit(), Before: s.numberOrNil(),
			During: s.numberOrNil(), Supports: s.byte()%2 == 0, Query: s.word(),
		})
	}
	for range s.count() {
		h.Actions = append(h.Actions, triage.Action{Text: s.text(), Option: s.word(), Cost: s.text()})
	}
	return h
}
