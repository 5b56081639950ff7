package recording

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// maxPoints is Prometheus' limit on the points of one series in a range query (web/api/v1).
const maxPoints = 11_000

// maxFormBytes bounds the body of a request, in bytes.
const maxFormBytes = 1 << 20

// statusClientClosed is what Prometheus answers to a client that went away.
const statusClientClosed = 499

// errorType is the class of an error in the API, with the status that goes with it.
type errorType struct {
	name   string
	status int
}

var (
	badData   = errorType{"bad_data", http.StatusBadRequest}
	execution = errorType{"execution", http.StatusUnprocessableEntity}
	timeout   = errorType{"timeout", http.StatusServiceUnavailable}
	canceled  = errorType{"canceled", statusClientClosed}
	internal  = errorType{"internal", http.StatusInternalServerError}
	notFound  = errorType{"not_found", http.StatusNotFound}
)

// apiError is an error that the client is told.
type apiError struct {
	typ errorType
	err error
}

func (e *apiError) Error() string { return e.err.Error() }

func invalid(param string, err error) error {
	return &apiError{badData, fmt.Errorf("invalid parameter %q: %w", param, err)}
}

// answer is what a question yields: data already in JSON, and the engine's remarks.
type answer struct {
	data  []byte
	notes annotations.Annotations
	query string // PromQL that the notes refer to
}

type api struct {
	recording *Recording
	data      storage.Queryable
	now       time.Time // the default evaluation time
}

func newAPI(r *Recording, asOf time.Time) http.Handler {
	_, last := r.store.Bounds()
	if asOf.IsZero() || asOf.After(last) {
		// Nothing happens after the last sample.
		asOf = last
	}
	a := &api{recording: r, data: r.store.AsOf(asOf), now: asOf}
	mux := http.NewServeMux()
	both := func(path string, ask func(*http.Request) (answer, error)) {
		mux.Handle("GET "+path, a.serve(ask))
		mux.Handle("POST "+path, a.serve(ask))
	}
	both("/api/v1/query", a.query)
	both("/api/v1/query_range", a.queryRange)
	both("/api/v1/series", a.series)
	both("/api/v1/labels", a.labelNames)
	mux.Handle("GET /api/v1/label/{name}/values", a.serve(a.labelValues))
	mux.Handle("GET /api/v1/rules", a.serve(constant(`{"groups":[]}`)))
	mux.Handle("GET /api/v1/alerts", a.serve(constant(`{"alerts":[]}`)))
	mux.Handle("GET /api/v1/status/buildinfo", a.serve(constant(
		`{"version":"recording","revision":"","branch":"","buildUser":"","buildDate":"","goVersion":""}`)))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("/", a.serve(func(r *http.Request) (answer, error) {
		return answer{}, &apiError{notFound, fmt.Errorf("a recording has no %s %s", r.Method, r.URL.Path)}
	}))
	return mux
}

func constant(data string) func(*http.Request) (answer, error) {
	return func(*http.Request) (answer, error) { return answer{data: []byte(data)}, nil }
}

// serve parses the form, asks and writes the envelope.
func (a *api) serve(ask func(*http.Request) (answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		if err := r.ParseForm(); err != nil {
			writeError(w, &apiError{badData, fmt.Errorf("parse form: %w", err)}, nil, "")
			return
		}
		got, err := ask(r)
		if err != nil {
			writeError(w, err, got.notes, got.query)
			return
		}
		writeAnswer(w, got)
	})
}

func (a *api) query(r *http.Request) (answer, error) {
	at, err := timeParam(r, "time", a.now)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel, opts, err := options(r)
	if err != nil {
		return answer{}, err
	}
	defer cancel()
	expr := r.FormValue("query")
	q, err := a.recording.engine.NewInstantQuery(ctx, a.data, opts, expr, at)
	if err != nil {
		return answer{}, invalid("query", err)
	}
	return run(ctx, r, q, expr)
}

func (a *api) queryRange(r *http.Request) (answer, error) {
	start, err := parseTime(r.FormValue("start"))
	if err != nil {
		return answer{}, invalid("start", err)
	}
	end, err := parseTime(r.FormValue("end"))
	if err != nil {
		return answer{}, invalid("end", err)
	}
	if end.Before(start) {
		return answer{}, invalid("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.FormValue("step"))
	if err != nil {
		return answer{}, invalid("step", err)
	}
	if step <= 0 {
		return answer{}, invalid("step", errors.New(
			"zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if end.Sub(start)/step > maxPoints {
		return answer{}, &apiError{badData, errors.New(
			"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")}
	}
	ctx, cancel, opts, err := options(r)
	if err != nil {
		return answer{}, err
	}
	defer cancel()
	expr := r.FormValue("query")
	q, err := a.recording.engine.NewRangeQuery(ctx, a.data, opts, expr, start, end, step)
	if err != nil {
		return answer{}, invalid("query", err)
	}
	return run(ctx, r, q, expr)
}

// options reads what both kinds of query take. The returned cancel must be called.
func options(r *http.Request) (context.Context, context.CancelFunc, promql.QueryOpts, error) {
	var lookback time.Duration
	if s := r.FormValue("lookback_delta"); s != "" {
		d, err := parseDuration(s)
		if err != nil {
			return nil, nil, nil, invalid("lookback_delta", err)
		}
		lookback = d
	}
	opts := promql.NewPrometheusQueryOpts(false, lookback, nil)
	s := r.FormValue("timeout")
	if s == "" {
		return r.Context(), func() {}, opts, nil
	}
	d, err := parseDuration(s)
	if err != nil {
		return nil, nil, nil, invalid("timeout", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), d)
	return ctx, cancel, opts, nil
}

func run(ctx context.Context, r *http.Request, q promql.Query, expr string) (answer, error) {
	defer q.Close()
	limit, err := limitParam(r)
	if err != nil {
		return answer{}, err
	}
	res := q.Exec(ctx)
	out := answer{notes: res.Warnings, query: expr}
	if res.Err != nil {
		return out, execError(res.Err)
	}
	var cut bool
	switch v := res.Value.(type) {
	case promql.Matrix:
		res.Value, cut = truncate(v, limit)
	case promql.Vector:
		res.Value, cut = truncate(v, limit)
	}
	if cut {
		out.notes = out.notes.Add(errTruncated)
	}
	out.data = appendQueryData(nil, res.Value)
	return out, nil
}

var errTruncated = errors.New("results truncated due to limit")

func truncate[S ~[]E, E any](s S, limit int) (S, bool) {
	if limit == 0 || len(s) <= limit {
		return s, false
	}
	return s[:limit], true
}

// execError classes an error of the engine as Prometheus does.
func execError(err error) error {
	var (
		byClient promql.ErrQueryCanceled
		byTime   promql.ErrQueryTimeout
		inStore  promql.ErrStorage
	)
	switch {
	case errors.As(err, &byClient), errors.Is(err, context.Canceled):
		return &apiError{canceled, err}
	case errors.As(err, &byTime):
		return &apiError{timeout, err}
	case errors.As(err, &inStore):
		return &apiError{internal, err}
	}
	return &apiError{execution, err}
}

func (a *api) series(r *http.Request) (answer, error) {
	if len(r.Form["match[]"]) == 0 {
		return answer{}, &apiError{badData, errors.New("no match[] parameter provided")}
	}
	found, err := a.selectSeries(r)
	if err != nil {
		return answer{}, err
	}
	return listAnswer(r, found, appendLabels)
}

func (a *api) labelNames(r *http.Request) (answer, error) {
	return a.labelStrings(r, func(l labels.Labels, add func(string)) {
		l.Range(func(l labels.Label) { add(l.Name) })
	})
}

func (a *api) labelValues(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return answer{}, &apiError{badData, fmt.Errorf("invalid label name: %q", name)}
	}
	return a.labelStrings(r, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	})
}

func (a *api) labelStrings(r *http.Request, visit func(labels.Labels, func(string))) (answer, error) {
	found, err := a.selectSeries(r)
	if err != nil {
		return answer{}, err
	}
	var all []string
	for _, l := range found {
		visit(l, func(s string) { all = append(all, s) })
	}
	slices.Sort(all)
	return listAnswer(r, slices.Compact(all), appendString)
}

// selectSeries returns the sorted label sets that any match[] selects between start and end; without match[], all.
func (a *api) selectSeries(r *http.Request) ([]labels.Labels, error) {
	first, last := time.UnixMilli(math.MinInt64), time.UnixMilli(math.MaxInt64)
	start, err := timeParam(r, "start", first)
	if err != nil {
		return nil, err
	}
	end, err := timeParam(r, "end", last)
	if err != nil {
		return nil, err
	}
	sets, err := a.recording.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, &apiError{badData, err}
	}
	for _, ms := range sets {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return nil, &apiError{badData, errors.New("match[] must contain at least one non-empty matcher")}
		}
	}
	if len(sets) == 0 {
		sets = append(sets, nil)
	}
	q, err := a.data.Querier(start.UnixMilli(), end.UnixMilli())
	if err != nil {
		return nil, &apiError{internal, err}
	}
	defer func() { _ = q.Close() }() // A querier of the memory store holds nothing.
	var out []labels.Labels
	for _, ms := range sets {
		set := q.Select(r.Context(), false, nil, ms...)
		for set.Next() {
			out = append(out, set.At().Labels())
		}
		if err := set.Err(); err != nil {
			return nil, execError(err)
		}
	}
	slices.SortFunc(out, labels.Compare)
	return slices.CompactFunc(out, labels.Equal), nil
}

func listAnswer[T any](r *http.Request, list []T, appendOne func([]byte, T) []byte) (answer, error) {
	limit, err := limitParam(r)
	if err != nil {
		return answer{}, err
	}
	var out answer
	list, cut := truncate(list, limit)
	if cut {
		out.notes = out.notes.Add(errTruncated)
	}
	out.data = appendList(nil, list, appendOne)
	return out, nil
}

func timeParam(r *http.Request, name string, def time.Time) (time.Time, error) {
	s := r.FormValue(name)
	if s == "" {
		return def, nil
	}
	t, err := parseTime(s)
	if err != nil {
		return time.Time{}, invalid(name, err)
	}
	return t, nil
}

func limitParam(r *http.Request) (int, error) {
	s := r.FormValue("limit")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, invalid("limit", err)
	}
	if n < 0 {
		return 0, invalid("limit", errors.New("limit must be non-negative"))
	}
	return n, nil
}

// parseTime reads seconds since the epoch, to the millisecond, or RFC 3339.
func parseTime(s string) (time.Time, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(f) || math.Abs(f) > math.MaxInt64/1000 {
			return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
		}
		whole, fraction := math.Modf(f)
		fraction = math.Round(fraction*1000) / 1000
		return time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
}

// parseDuration reads seconds, or a Prometheus duration.
func parseDuration(s string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		ns := f * float64(time.Second)
		if math.IsNaN(ns) || math.Abs(ns) >= math.MaxInt64 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", s)
		}
		return time.Duration(ns), nil
	}
	if d, err := model.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid duration", s)
}
