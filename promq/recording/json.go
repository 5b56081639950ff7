package recording

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
)

// The JSON is written by hand because that of the library lives in the package of Prometheus' web server, which brings the
// whole TSDB along. The shapes are those of web/api/v1/json_codec.go.

// maxNotes bounds the warnings and the infos of an answer, as in Prometheus.
const maxNotes = 10

func writeAnswer(w http.ResponseWriter, a answer) {
	out := append([]byte(nil), `{"status":"success","data":`...)
	out = append(out, a.data...)
	out = appendNotes(out, a.notes, a.query)
	write(w, http.StatusOK, append(out, '}'))
}

func writeError(w http.ResponseWriter, err error, notes annotations.Annotations, query string) {
	typ := internal
	if ae, ok := errors.AsType[*apiError](err); ok {
		typ = ae.typ
	}
	out := append([]byte(nil), `{"status":"error","errorType":`...)
	out = appendString(out, typ.name)
	out = append(out, `,"error":`...)
	out = appendString(out, err.Error())
	out = appendNotes(out, notes, query)
	write(w, typ.status, append(out, '}'))
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // A client that went away needs no answer.
}

func appendNotes(out []byte, notes annotations.Annotations, query string) []byte {
	warnings, infos := notes.AsStrings(query, maxNotes, maxNotes)
	if len(warnings) > 0 {
		out = appendList(append(out, `,"warnings":`...), warnings, appendString)
	}
	if len(infos) > 0 {
		out = appendList(append(out, `,"infos":`...), infos, appendString)
	}
	return out
}

func appendQueryData(out []byte, v parser.Value) []byte {
	out = append(out, `{"resultType":`...)
	out = appendString(out, string(v.Type()))
	out = append(out, `,"result":`...)
	switch v := v.(type) {
	case promql.Matrix:
		out = appendList(out, v, appendSeries)
	case promql.Vector:
		out = appendList(out, v, appendSample)
	case promql.Scalar:
		out = appendPoint(out, v.T, v.V)
	case promql.String:
		out = appendStamp(append(out, '['), v.T)
		out = append(appendString(append(out, ','), v.V), ']')
	}
	return append(out, '}')
}

func appendSeries(out []byte, s promql.Series) []byte {
	out = append(out, `{"metric":`...)
	out = appendLabels(out, s.Metric)
	if len(s.Floats) > 0 {
		out = appendList(append(out, `,"values":`...), s.Floats, func(out []byte, p promql.FPoint) []byte {
			return appendPoint(out, p.T, p.F)
		})
	}
	if len(s.Histograms) > 0 {
		out = appendList(append(out, `,"histograms":`...), s.Histograms, func(out []byte, p promql.HPoint) []byte {
			return appendHistogramPoint(out, p.T, p.H)
		})
	}
	return append(out, '}')
}

func appendSample(out []byte, s promql.Sample) []byte {
	out = append(out, `{"metric":`...)
	out = appendLabels(out, s.Metric)
	if s.H != nil {
		out = appendHistogramPoint(append(out, `,"histogram":`...), s.T, s.H)
	} else {
		out = appendPoint(append(out, `,"value":`...), s.T, s.F)
	}
	return append(out, '}')
}

func appendPoint(out []byte, t int64, f float64) []byte {
	out = appendStamp(append(out, '['), t)
	return append(appendFloat(append(out, ','), f), ']')
}

func appendHistogramPoint(out []byte, t int64, h *histogram.FloatHistogram) []byte {
	out = appendStamp(append(out, '['), t)
	out = append(out, `,{"count":`...)
	out = appendFloat(out, h.Count)
	out = append(out, `,"sum":`...)
	out = appendFloat(out, h.Sum)
	first := true
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue
		}
		if first {
			out = append(out, `,"buckets":[`...)
		} else {
			out = append(out, ',')
		}
		first = false
		out = append(out, '[', boundaries(b.LowerInclusive, b.UpperInclusive), ',')
		out = append(appendFloat(out, b.Lower), ',')
		out = append(appendFloat(out, b.Upper), ',')
		out = append(appendFloat(out, b.Count), ']')
	}
	if !first {
		out = append(out, ']')
	}
	return append(out, '}', ']')
}

// boundaries is the API's code for which ends of a bucket belong to it.
func boundaries(lower, upper bool) byte {
	switch {
	case lower && upper:
		return '3'
	case lower:
		return '1'
	case upper:
		return '0'
	}
	return '2'
}

func appendLabels(out []byte, l labels.Labels) []byte {
	out = append(out, '{')
	first := true
	l.Range(func(l labels.Label) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = appendString(out, l.Name)
		out = appendString(append(out, ':'), l.Value)
	})
	return append(out, '}')
}

func appendList[S ~[]T, T any](out []byte, list S, appendOne func([]byte, T) []byte) []byte {
	out = append(out, '[')
	for i, one := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendOne(out, one)
	}
	return append(out, ']')
}

// appendStamp writes milliseconds as seconds with up to three digits after the point.
func appendStamp(out []byte, t int64) []byte {
	if t < 0 {
		out = append(out, '-')
		t = -t
	}
	out = strconv.AppendInt(out, t/1000, 10)
	if ms := t % 1000; ms != 0 {
		out = append(out, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	return out
}

// appendFloat writes a float as a string, which can hold NaN and the infinities.
func appendFloat(out []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	out = append(out, '"')
	out = strconv.AppendFloat(out, f, format, -1, 64)
	return append(out, '"')
}

// appendString writes s as a JSON string; nearly all are plain, and those need no encoder.
func appendString(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // A string always marshals.
			return append(out, quoted...)
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"')
}
