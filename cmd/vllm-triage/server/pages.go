package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"vllm-triage/cmd/vllm-triage/server/chatops"
	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify"
	"vllm-triage/notify/chart"
	"vllm-triage/triage"
	"vllm-triage/triage/store"
)

// pageSize is how many incidents a list shows at once.
const pageSize = 50

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand ends the program instead.
	return hex.EncodeToString(b[:])
}

func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// site is what every page shows around its content.
func (s *Server) site(c echo.Context, r reader, incident string) web.Site {
	cfg := s.Parts().Config
	zone, err := time.LoadLocation(cmp.Or(cfg.Slack.Timezone, "UTC"))
	if err != nil {
		zone = time.UTC
	}
	out := web.Site{
		Language: cmp.Or(c.QueryParam("lang"), cfg.Slack.Language), Default: cfg.Slack.Language, Location: zone, Now: s.now(),
		User: r.name, Grant: r.grant, Version: s.version,
	}
	if incident != "" && (r.full || r.grant != "") {
		out.CSRF = s.formToken(r, incident)
	}
	return out
}

func html(c echo.Context, write func(*bytes.Buffer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return c.HTMLBlob(http.StatusOK, b.Bytes())
}

var errSignIn = echo.NewHTTPError(http.StatusUnauthorized,
	"this page needs credentials: open the link in the chat message, or sign in through the proxy in front of this service")

// listPage shows the newest incidents.
func (s *Server) listPage(c echo.Context) error {
	r, ok := s.readerOf(c, "")
	if !ok {
		return errSignIn
	}
	ctx := c.Request().Context()
	f, err := filterOf(c)
	if err != nil {
		return err
	}
	f.Limit = pageSize + 1
	rows, err := s.store.Incidents(ctx, f)
	if err != nil {
		return err
	}
	stats, err := s.store.Stats(ctx, s.now())
	if err != nil {
		return err
	}
	models, err := s.store.Models(ctx)
	if err != nil {
		return err
	}
	v := web.ListView{
		Site: s.site(c, r, ""), Status: f.Status, Model: f.Model, Models: models, Cursor: c.QueryParam("before"),
		Firing: stats.Incidents[triage.StatusFiring], WebhookURL: s.Parts().Config.Server.ExternalURL + "/webhook/alertmanager",
	}
	for _, n := range stats.Incidents {
		v.Total += n
	}
	if len(rows) > pageSize {
		rows = rows[:pageSize]
		last := rows[pageSize-1]
		v.Older = strconv.FormatInt(last.OpenedAt.UnixMilli(), 10) + "." + last.ID
	}
	for _, in := range rows {
		v.Rows = append(v.Rows, listRow(in))
	}
	return html(c, func(b *bytes.Buffer) error { return web.List(b, v) })
}

// filterOf reads the filters of a list; the cursor is "milliseconds.id" of the last row shown.
func filterOf(c echo.Context) (store.Filter, error) {
	f := store.Filter{Model: c.QueryParam("model")}
	switch st := c.QueryParam("status"); st {
	case "", triage.StatusFiring, triage.StatusResolved:
		f.Status = st
	default:
		return f, echo.NewHTTPError(http.StatusBadRequest, "status is firing or resolved")
	}
	if before := c.QueryParam("before"); before != "" {
		ms, id, ok := strings.Cut(before, ".")
		n, err := strconv.ParseInt(ms, 10, 64)
		if !ok || err != nil {
			return f, echo.NewHTTPError(http.StatusBadRequest, "the cursor is not one of ours")
		}
		f.Before, f.BeforeID = time.UnixMilli(n), id
	}
	return f, nil
}

// load reads an incident for a page or answer, as far as its reader may see it.
func (s *Server) load(c echo.Context) (reader, store.Incident, []triage.Alert, store.Reports, error) {
	id := c.Param("id")
	r, ok := s.readerOf(c, id)
	if !ok {
		return r, store.Incident{}, nil, store.Reports{}, errSignIn
	}
	ctx := c.Request().Context()
	in, alerts, err := s.store.Incident(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return r, in, nil, store.Reports{}, echo.NewHTTPError(http.StatusNotFound,
			"there is no such incident; incidents are kept for "+s.Parts().Config.Retention.String())
	}
	if err != nil {
		return r, in, nil, store.Reports{}, err
	}
	reports, err := s.store.Reports(ctx, id)
	return r, in, alerts, reports, err
}

// incidentPage shows all that is known of an incident.
func (s *Server) incidentPage(c echo.Context) error {
	if id, ok := strings.CutSuffix(c.Param("id"), ".json"); ok {
		c.SetParamValues(id)
		return s.incidentAPI(c)
	}
	r, in, alerts, reports, err := s.load(c)
	if err != nil {
		return err
	}
	site := s.site(c, r, in.ID)
	p := s.Parts()
	v := web.IncidentView{
		Site: site, Report: reportOf(in, alerts, reports),
		Options: s.messageOptions(p, in, settings{Language: site.Language, Timezone: site.Location.String()}),
		Book:    p.Runbooks,
	}
	v.Options.Previous = reports.Previous
	if err := s.addRecords(c.Request().Context(), in, &v); err != nil {
		return err
	}
	return html(c, func(b *bytes.Buffer) error { return web.Incident(b, v) })
}

// reportOf is the newest report, or what is known of an incident that was not triaged yet.
func reportOf(in store.Incident, alerts []triage.Alert, reports store.Reports) triage.Report {
	if reports.Latest != nil {
		return *reports.Latest
	}
	return triage.Report{Schema: triage.SchemaVersion, GeneratedAt: in.NotifiedAt, Incident: triage.IncidentInfo{
		ID: in.ID, GroupKey: in.GroupKey, Status: in.Status, Scope: in.Scope, Onset: in.StartedAt, Alerts: alerts,
		Window: triage.Span{Start: in.StartedAt, End: in.NotifiedAt},
	}}
}

// incidentChart is the picture of a report.
func (s *Server) incidentChart(c echo.Context) error {
	r, in, _, reports, err := s.load(c)
	if err != nil {
		return err
	}
	if reports.Latest == nil {
		return echo.NewHTTPError(http.StatusNotFound, "the incident has not been triaged yet")
	}
	site := s.site(c, r, in.ID)
	png, err := chart.PNG(*reports.Latest, chart.Options{Language: site.Language, Location: site.Location})
	if errors.Is(err, chart.ErrNothing) {
		return echo.NewHTTPError(http.StatusNotFound, "there is nothing to draw")
	}
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "image/png", png)
}

// runbookPage shows a runbook, filled with an incident's numbers when it was opened from one.
func (s *Server) runbookPage(c echo.Context) error {
	p := s.Parts()
	incident := c.QueryParam("incident")
	r, ok := s.readerOf(c, incident)
	if !ok && (incident != "" || !p.Config.Pages.PublicRunbooks) {
		return errSignIn
	}
	site := s.site(c, r, incident)
	page, ok := p.Runbooks.Get(cmp.Or(site.Language, "en"), c.Param("cause"))
	if !ok {
		return echo.NewHTTPError(http.StatusNotFound, "there is no runbook of that name")
	}
	v := web.RunbookView{Site: site, Page: page, Book: p.Runbooks}
	if incident != "" {
		in, _, err := s.store.Incident(c.Request().Context(), incident)
		if err != nil {
			return notFound(err, "there is no such incident")
		}
		reports, err := s.store.Reports(c.Request().Context(), incident)
		if err != nil {
			return err
		}
		v.Report, v.Previous = reports.Latest, reports.Previous
		if v.Steps, v.Seen, err = s.records(c.Request().Context(), in); err != nil {
			return err
		}
		if v.Checks, err = s.checksOf(c.Request().Context(), in.ID); err != nil {
			return err
		}
	}
	return html(c, func(b *bytes.Buffer) error { return web.Runbook(b, v) })
}

func notFound(err error, reason string) error {
	if errors.Is(err, store.ErrNotFound) {
		return echo.NewHTTPError(http.StatusNotFound, reason)
	}
	return err
}

// addRecords adds what people said and did about an incident.
func (s *Server) addRecords(ctx context.Context, in store.Incident, v *web.IncidentView) error {
	feedback, err := s.store.Feedback(ctx, in.ID)
	if err != nil {
		return err
	}
	for _, f := range feedback {
		v.Feedback = append(v.Feedback, web.Feedback{By: chatops.NameOf(f.Author), At: f.At, Opinion: f.Opinion, Cause: f.Cause, Comment: f.Comment})
	}
	if v.Steps, v.Seen, err = s.records(ctx, in); err != nil {
		return err
	}
	if v.Checks, err = s.checksOf(ctx, in.ID); err != nil {
		return err
	}
	verdicts, err := s.store.Verdicts(ctx, in.ID)
	if err != nil {
		return err
	}
	for _, x := range verdicts[:max(len(verdicts)-1, 0)] {
		v.History = append(v.History, web.Revision{
			At: x.At, Status: x.Status, Verdict: x.Verdict, Bottleneck: x.Bottleneck, Trigger: x.Trigger, Probability: x.Probability,
		})
	}
	conversations, err := s.store.Conversations(ctx, in.ID)
	if err != nil {
		return err
	}
	for _, conv := range conversations {
		if conv.Post(store.PartCard).Ref.ID != "" {
			v.Posted = append(v.Posted, web.Posted{Channel: conv.Channel})
		}
	}
	return nil
}

// records are the steps taken in this incident, and what ended similar ones.
func (s *Server) records(ctx context.Context, in store.Incident) ([]web.StepRecord, []web.Seen, error) {
	steps, err := s.store.Steps(ctx, in.ID)
	if err != nil {
		return nil, nil, err
	}
	var own []web.StepRecord
	for _, x := range steps {
		own = append(own, web.StepRecord{Page: x.Cause, Step: x.Step, State: x.State, By: x.Author, At: x.At, Comment: x.Note})
	}
	similar, err := s.store.Similar(ctx, in, 10)
	if err != nil {
		return nil, nil, err
	}
	var seen []web.Seen
	for _, other := range similar {
		steps, err := s.store.Steps(ctx, other.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, x := range steps {
			if x.State == web.StateHelped || x.State == web.StateDidNotHelp {
				seen = append(seen, web.Seen{
					IncidentID: other.ID, At: x.At, Model: other.Scope.Model, Page: x.Cause, Step: x.Step, State: x.State, By: x.Author,
					Comment: x.Note,
				})
			}
		}
	}
	slices.SortStableFunc(seen, func(a, b web.Seen) int { return -cmp.Compare(a.State, b.State) }) // "helped" first.
	return own, seen, nil
}

// listAPI is the list as JSON.
func (s *Server) listAPI(c echo.Context) error {
	if _, ok := s.readerOf(c, ""); !ok {
		return errSignIn
	}
	f, err := filterOf(c)
	if err != nil {
		return err
	}
	rows, err := s.store.Incidents(c.Request().Context(), f)
	if err != nil {
		return err
	}
	type row struct {
		ID          string         `json:"id"`
		Status      string         `json:"status"`
		Scope       triage.Scope   `json:"scope"`
		OpenedAt    time.Time      `json:"opened_at"`
		ResolvedAt  time.Time      `json:"resolved_at,omitzero"`
		Verdict     triage.Verdict `json:"verdict,omitempty"`
		Bottleneck  string         `json:"bottleneck,omitempty"`
		Trigger     string         `json:"trigger,omitempty"`
		Probability float64        `json:"probability"`
		Flaps       int            `json:"flaps"`
		Revision    int64          `json:"revision"`
	}
	out := []row{}
	for _, in := range rows {
		out = append(out, row{
			in.ID, in.Status, in.Scope, in.OpenedAt, in.ResolvedAt, in.Verdict, in.Bottleneck, in.Trigger, in.Probability, in.Flaps,
			in.Revision,
		})
	}
	return c.JSON(http.StatusOK, map[string]any{"incidents": out})
}

// incidentAPI is the newest report as JSON.
func (s *Server) incidentAPI(c echo.Context) error {
	_, in, alerts, reports, err := s.load(c)
	if err != nil {
		return err
	}
	r := reportOf(in, alerts, reports)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/json", b.Bytes())
}

func listRow(in store.Incident) web.ListRow {
	return web.ListRow{
		ID: in.ID, Status: in.Status, Model: in.Scope.Model, Namespace: in.Scope.Namespace, StartedAt: in.StartedAt,
		EndedAt: in.ResolvedAt, Verdict: in.Verdict,
		Bottleneck: in.Bottleneck, Trigger: in.Trigger, Probability: in.Probability, Flaps: in.Flaps, Repeats: in.Repeats,
	}
}

// noteLines posts lines to the threads of an incident in each channel's language.
func (s *Server) addNote(ctx context.Context, incident, name, actor string, lines ...string) error {
	body, err := json.Marshal(notify.NewNote(incident, s.Parts().Config.Slack.Language, actor, lines...))
	if err != nil {
		return err
	}
	if err := s.store.AddNote(ctx, incident, name, body, s.now()); err != nil {
		return err
	}
	signal(s.tell)
	return nil
}
