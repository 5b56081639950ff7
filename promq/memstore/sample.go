package memstore

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// Sample is one value of a series: a float, or a histogram if Hist is set.
type Sample struct {
	// At is the time in milliseconds since the Unix epoch.
	At int64
	// Value is the float, whose exact bits are kept: the staleness marker is a NaN with a certain payload.
	Value float64
	// Hist is a native histogram, or nil.
	Hist *histogram.FloatHistogram
}

// StaleAt is the marker that a series ended at a moment, in milliseconds since 1970.
func StaleAt(at int64) Sample { return Sample{At: at, Value: math.Float64frombits(value.StaleNaN)} }

// IsStale reports whether the sample is a staleness marker: its series ended here.
func (s *Sample) IsStale() bool {
	if s.Hist != nil {
		return value.IsStaleNaN(s.Hist.Sum)
	}
	return value.IsStaleNaN(s.Value)
}

// T implements chunks.Sample.
func (s *Sample) T() int64 { return s.At }

// ST implements chunks.Sample. Start timestamps are not kept.
func (*Sample) ST() int64 { return 0 }

// F implements chunks.Sample.
func (s *Sample) F() float64 { return s.Value }

// H implements chunks.Sample. Histograms with integer counts are kept as floats.
func (*Sample) H() *histogram.Histogram { return nil }

// FH implements chunks.Sample. The engine works on histograms in place, so it gets a copy.
func (s *Sample) FH() *histogram.FloatHistogram {
	if s.Hist == nil {
		return nil
	}
	return s.Hist.Copy()
}

// Type implements chunks.Sample.
func (s *Sample) Type() chunkenc.ValueType {
	if s.Hist != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// Copy implements chunks.Sample.
func (s *Sample) Copy() chunks.Sample { return &Sample{At: s.At, Value: s.Value, Hist: s.FH()} }

// samples lets the library's list iterator walk a slice without copying or allocating.
type samples []Sample

func (s samples) Get(i int) chunks.Sample { return &s[i] }

func (s samples) Len() int { return len(s) }
