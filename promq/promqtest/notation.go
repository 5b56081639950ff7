package promqtest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"vllm-triage/promq/memstore"
)

// Store is the series made from a notation, with transformations to make variants of them.
type Store = memstore.Store

// Option changes how series are laid out in time.
type Option func(*options)

type options struct {
	start time.Time
}

// StartAt puts the first value of each series at t instead of the Unix epoch.
func StartAt(t time.Time) Option {
	return func(o *options) { o.start = t }
}

// hugeRepeat finds a repetition that could only be a mistake; the parser would allocate all its values at once.
var hugeRepeat = regexp.MustCompile(`x\d{6,}(\s|$)`)

// New returns the series of a notation. Errors name the line.
func New(notation string, opts ...Option) (*Store, error) {
	o := options{start: time.UnixMilli(0)}
	for _, opt := range opts {
		opt(&o)
	}
	var (
		p      = parser.NewParser(parser.Options{})
		step   time.Duration
		series []memstore.Series
	)
	for i, line := range strings.Split(notation, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		if interval, ok := loadLine(line); ok {
			step, err = parseInterval(interval)
		} else {
			var one memstore.Series
			one, err = parseSeries(p, line, o.start, step)
			series = append(series, one)
		}
		if err != nil {
			return nil, fmt.Errorf("parse series notation, line %d: %w", i+1, err)
		}
	}
	return memstore.New(series), nil
}

// loadLine recognises "load 15s". A metric of that name would be followed by a brace or by something that is no duration.
func loadLine(line string) (interval string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 2 || fields[0] != "load" {
		return "", false
	}
	return fields[1], true
}

func parseInterval(s string) (time.Duration, error) {
	d, err := model.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("load interval: %w", err)
	}
	if d <= 0 {
		return 0, errors.New("load interval must be above zero")
	}
	return time.Duration(d), nil
}

func parseSeries(p parser.Parser, line string, start time.Time, step time.Duration) (memstore.Series, error) {
	var none memstore.Series
	if step == 0 {
		return none, errors.New(`a "load <interval>" line must come before the first series`)
	}
	if hugeRepeat.MatchString(line[strings.LastIndexByte(line, '}')+1:]) {
		return none, errors.New("more than 99,999 repetitions")
	}
	l, values, err := p.ParseSeriesDesc(line)
	if err != nil {
		return none, err
	}
	if l.IsEmpty() {
		return none, errors.New("series without a name and labels")
	}
	one := memstore.Series{Labels: l}
	for i, v := range values {
		if v.Omitted {
			continue
		}
		at := start.UnixMilli() + int64(i)*step.Milliseconds()
		one.Samples = append(one.Samples, memstore.Sample{At: at, Value: v.Value, Hist: v.Histogram})
	}
	return one, nil
}
