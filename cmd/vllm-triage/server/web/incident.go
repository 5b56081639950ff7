package web

import (
	"io"
	"slices"
	"strings"
	"time"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/triage"
	"vllm-triage/triage/kb/runbook"
)

// IncidentView is an incident with all that is known of it.
type IncidentView struct {
	Site Site
	// Report is the newest one. Without a verdict the incident has not been triaged: then only its Incident counts, and
	// the page asks again by itself while the incident fires.
	Report triage.Report
	// Options are those of the incident's message; language and zone are taken from Site.
	Options notify.Options
	// Book has the titles of runbooks and steps; nil is the shipped one.
	Book *runbook.Book

	Feedback []Feedback   // The oldest first, like the lists below.
	Steps    []StepRecord // The newest state of each step.
	Checks   []Recheck
	History  []Revision // Of the reports before this one.
	Seen     []Seen     // What ended similar incidents, the best first.
	Posted   []Posted
}

// Incident writes the page of an incident.
func Incident(w io.Writer, v IncidentView) error {
	return render(w, "incident", newIncidentPage(v))
}

// incidentPage is what incident.html shows.
type incidentPage struct {
	page
	ID                 string
	M                  notify.Message
	Untriaged, Refresh bool
	StatusWord         string
	// Verdict is the title of a page without an answer; else the first answer is.
	Verdict string
	// AsOf says when the report was made, once that is a while ago.
	AsOf string

	Critical              bool
	Answers               []answer
	Binds                 answer // The first bottleneck, for the head of its evidence.
	ChangedName           string
	Facts                 []fact
	Steps                 []notify.Step
	NextTitle             string
	Chart                 *chart
	Chain                 []link
	Evidence              []evidenceRow
	ChangeFor             []evidenceRow
	Bottlenecks, Triggers []ranked
	SomethingElse         ranked
	Alerts                alertList
	Queries               queryList
	Anchors               []anchor
	About                 []fact
	Buttons               []button

	Feedback []recordRow
	Causes   []option
	Done     []recordRow
	Checks   []checkTable
	History  []historyRow
	Seen     []recordRow
	Posted   []Posted
	Runbook  *runbookLink
	JSON     string
}

// answer is the answer to one of the two questions.
type answer struct{ Axis, Question, Title, Explain, Percent, Bar, Level, Confidence string }

type (
	fact struct {
		Name  string
		Value string
		More  []string // Lines instead of a value.
		// Items are what Value only counts, Rest how many of them are left out.
		Items []string
		Rest  string
	}
	option struct{ Value, Text string }
	anchor struct{ ID, Text string }
	button struct{ Href, Text string }
	// link is one link of the causal chain.
	link struct {
		Text, Kind string
		At         moment
	}
	runbookLink struct {
		Href, Title, Steps string
	}
	historyRow struct {
		At      moment
		Text    string
		Percent string
	}
)

// stale is the age from which a report says when it was made: what it says of the present is that old.
const stale = time.Minute

func newIncidentPage(v IncidentView) incidentPage {
	id := clean(v.Report.Incident.ID)
	p := incidentPage{page: newPage(v.Site, "incidents", IncidentPath(v.Report.Incident.ID)), ID: id}
	book := v.Book
	if book == nil {
		book = runbook.Default()
	}
	o := v.Options
	o.Language, o.Location = p.Lang(), v.Site.Location
	p.M = notify.NewMessage(v.Report, o)
	p.JSON = p.granted(p.link(IncidentPath(v.Report.Incident.ID) + ".json"))
	p.Alerts = p.alerts(v.Report.Incident)
	p.StatusWord = p.T("status." + string(p.M.Status))
	p.Critical = p.M.Severity == notify.Critical
	p.Tone = tone(p.M)
	p.Posted = posted(v.Posted)
	if v.Report.Verdict == "" {
		p.Untriaged = true
		p.Refresh = v.Report.Incident.Status == triage.StatusFiring
		p.Verdict = p.T("incident.untriaged.title")
		p.Title = p.Verdict + " · " + p.M.Subject
		p.Tone = toneUnsure
		return p
	}
	p.Title = p.M.Headline
	if p.M.Verdict != triage.CauseFound && p.M.Verdict != triage.NoBottleneck {
		p.Verdict = p.T("verdict.inconclusive")
	}
	if at := v.Report.GeneratedAt; p.M.Status != notify.Adhoc && !at.IsZero() && v.Site.Now.Sub(at) >= stale {
		p.AsOf = p.T("incident.as_of", "clock", p.f.Clock(at))
	}
	r := toldReport(v.Report, o.Previous, p.M)
	p.verdict(r)
	p.facts(r)
	p.Steps = p.M.Steps
	p.NextTitle = p.T("label.next")
	if p.over() {
		p.NextTitle = p.T("label.advised")
	}
	p.Chart = p.chart(v.Report)
	p.Chain = p.chain(r)
	e := evidence{page: p.page, report: r, options: o}
	p.Evidence = e.rows(nth(r.Bottlenecks, 0), axisBottleneck)
	p.ChangeFor = e.rows(nth(r.Triggers, 0), axisTrigger)
	p.Bottlenecks, p.Triggers = e.ranking(r.Bottlenecks, axisBottleneck), e.ranking(r.Triggers, axisTrigger)
	p.SomethingElse = ranked{Title: p.T("incident.something_else"), Percent: p.percent(r.Residual), Bar: bar(r.Residual)}
	p.Queries = p.queries(v.Report)
	p.about(v.Report)
	p.buttons()
	p.records(v, book)
	p.anchors()
	return p
}

// Action is the address of a form about the incident.
func (p incidentPage) Action(what string) string { return p.action(p.ID, what) }

// table is what the template of an evidence table gets.
type table struct {
	P       page
	Caption string
	Rows    []evidenceRow
}

// Table is an evidence table with its caption.
func (p page) Table(caption string, rows []evidenceRow) table {
	return table{P: p, Caption: caption, Rows: rows}
}

// ranking is what the template of a ranking gets.
type ranking struct {
	P    page
	Rows []ranked
}

// Ranked is the list of all hypotheses of one question.
func (p incidentPage) Ranked(rows []ranked) ranking { return ranking{P: p.page, Rows: rows} }

func tone(m notify.Message) string {
	switch {
	case m.Status == notify.Resolved, m.Status == notify.Recovered:
		return toneGood
	case m.Verdict == triage.NoBottleneck:
		return toneCalm
	case m.Verdict != triage.CauseFound:
		return toneUnsure
	case m.Severity == notify.Critical:
		return toneBad
	default:
		return toneWarn
	}
}

// toldReport is the report whose cause the message tells: the previous one when the incident is over and only it found
// a cause. The verdict of a message is that of the report it tells.
func toldReport(r triage.Report, previous *triage.Report, m notify.Message) triage.Report {
	if previous != nil && m.Verdict == triage.CauseFound && r.Verdict != triage.CauseFound {
		return *previous
	}
	return r
}

func nth(hs []triage.Hypothesis, i int) triage.Hypothesis {
	if i < len(hs) {
		return hs[i]
	}
	return triage.Hypothesis{}
}

// verdict answers the two questions. Without a cause there is nothing to answer, only candidates, which are ranked below.
func (p *incidentPage) verdict(r triage.Report) {
	p.Binds = p.answer(axisBottleneck, p.M.Bottleneck, nth(r.Bottlenecks, 0))
	changed := p.answer(axisTrigger, p.M.Changed, nth(r.Triggers, 0))
	p.ChangedName = changed.Title
	if by := p.M.ChangedBy; by != "" {
		changed.Explain = by
	}
	if p.over() {
		p.Binds.Question = p.T("question.bound")
	}
	switch p.M.Verdict {
	case triage.CauseFound:
		p.Answers = []answer{p.Binds, changed}
	case triage.NoBottleneck:
		p.Answers = []answer{p.Binds}
	default:
		for i, c := range p.M.Candidates {
			a := p.answer(axisBottleneck, c, nth(r.Bottlenecks, i))
			a.Question, a.Confidence = p.T("question.candidate"), "" // All of them are uncertain.
			p.Answers = append(p.Answers, a)
		}
	}
}

// over says that the told cause binds no more.
func (p *incidentPage) over() bool {
	return p.M.Verdict == triage.CauseFound && (p.M.Status == notify.Resolved || p.M.Status == notify.Recovered)
}

func (p *incidentPage) answer(axis string, c notify.Claim, h triage.Hypothesis) answer {
	key := "question.binds"
	if axis == axisTrigger {
		key = "question.changed"
	}
	a := answer{
		Axis: axis, Question: p.T(key), Title: p.words.title(axis, c.ID, clean(h.Title)), Explain: c.Explain,
		Level: string(c.Level), Confidence: c.Confidence,
	}
	if c.ID != "" {
		a.Percent, a.Bar = p.percent(h.Probability), bar(h.Probability)
	}
	return a
}

// fewPlaces is how many places a message spells out.
const fewPlaces = 3

func (p *incidentPage) facts(r triage.Report) {
	add := func(name, value string, more ...string) {
		if value != "" || len(more) > 0 {
			p.Facts = append(p.Facts, fact{Name: p.T(name), Value: value, More: more})
		}
	}
	where := p.M.Where
	if where == "" && r.Incident.Replicas > 0 {
		where = p.N("where.all", r.Incident.Replicas)
	}
	if len(p.M.Impact) > 0 {
		add("label.impact", "", p.M.Impact...)
	}
	add("label.where", where)
	if len(p.M.Places) > fewPlaces && where != "" {
		f := &p.Facts[len(p.Facts)-1]
		f.Items = p.M.Places
		if p.M.MorePlaces > 0 {
			f.Rest = p.T("and_more", "n", locale.Grouped(p.M.MorePlaces))
		}
	}
	add("label.since", p.began(r))
	add("label.alerts", p.M.AlertsText)
	if p.M.Also != nil {
		add("label.also", p.M.Also.Title+" ("+p.M.Also.Confidence+")")
	}
	add("label.runner_up", p.M.RunnerUp)
}

// began is when the told cause began, and how far that may be off. The message has it too, as part of a sentence.
func (p *incidentPage) began(r triage.Report) string {
	since := nth(r.Bottlenecks, 0).Since
	if since.IsZero() {
		since = r.Incident.Onset
	}
	if since.IsZero() || p.M.Since == "" {
		return ""
	}
	spread := time.Duration(r.Incident.OnsetUncertaintyMS) * time.Millisecond
	if spread <= 0 {
		return p.f.Clock(since)
	}
	return p.f.Clock(since) + " ± " + p.f.Duration(spread)
}

func (p *incidentPage) chain(r triage.Report) []link {
	// The message leaves out the trigger "none" and links without a name.
	links := slices.DeleteFunc(slices.Clone(r.Chain), func(l triage.ChainLink) bool { return l.ID == "none" })
	out := make([]link, 0, len(p.M.Chain))
	for i, text := range p.M.Chain {
		l := link{Text: text}
		if len(links) == len(p.M.Chain) {
			l.Kind = chainKind(links[i].Kind)
			if !links[i].Since.IsZero() {
				l.At = moment{Clock: p.f.ClockSeconds(links[i].Since), Machine: links[i].Since.UTC().Format(time.RFC3339)}
			}
		}
		out = append(out, l)
	}
	return out
}

// chainKind is the kind of a link, or nothing for kinds that this build does not know.
func chainKind(kind string) string {
	switch kind {
	case axisTrigger, axisBottleneck, "consequence":
		return kind
	default:
		return ""
	}
}

// about says how the report came about.
func (p *incidentPage) about(r triage.Report) {
	add := func(name, value string) {
		if value != "" {
			p.About = append(p.About, fact{Name: p.T(name), Value: value})
		}
	}
	span := func(s triage.Span) string {
		if s.Start.IsZero() || s.End.IsZero() {
			return ""
		}
		return p.f.ClockSeconds(s.Start) + "–" + p.f.ClockSeconds(s.End) + " " + p.f.Zone(s.End)
	}
	add("about.at", p.at(r.GeneratedAt).Clock)
	add("about.window", span(r.Incident.Window))
	if r.Incident.Baseline != nil {
		add("about.baseline", span(*r.Incident.Baseline))
	} else {
		add("about.baseline", p.T("about.no_baseline"))
	}
	s := r.Incident.Scope
	for _, x := range []struct{ name, value string }{
		{"about.model", s.Model},
		{"about.namespace", s.Namespace},
		{"about.cluster", s.Cluster},
		{"about.job", s.Job},
		{"about.service", s.Service},
		{"about.instance", s.Instance},
		{"about.pod", s.Pod},
	} {
		add(x.name, clean(x.value))
	}
	add("about.vllm", clean(r.VLLM.Text))
	if r.Queries > 0 {
		add("about.queries", p.N("about.queries.count", r.Queries, "time", p.f.Duration(time.Duration(r.QueryMS)*time.Millisecond)))
	}
	add("about.knowledge", clean(r.Knowledge))
	add("about.incident", p.ID)
}

func (p *incidentPage) buttons() {
	l := p.M.Links
	for _, b := range []button{
		{l.Prometheus, "button.prometheus"},
		{l.Grafana, "button.grafana"},
		{l.Alertmanager, "button.alertmanager"},
		{l.AlertRunbook, "button.alert_runbook"},
	} {
		if b.Href != "" {
			p.Buttons = append(p.Buttons, button{Href: b.Href, Text: p.T(b.Text)})
		}
	}
}

// records fills in what people did and said, and what was measured again.
func (p *incidentPage) records(v IncidentView, book *runbook.Book) {
	for _, f := range v.Feedback {
		text, tone := p.opinion(f.Opinion)
		row := recordRow{Tone: tone, State: text, By: clean(f.By), At: p.at(f.At), Comment: notify.Clean(f.Comment, maxText)}
		if f.Cause == "other" {
			row.Title = p.T("feedback.other")
		} else if f.Cause != "" {
			row.Title = p.words.title(axisBottleneck, f.Cause, clean(f.Cause))
		}
		p.Feedback = append(p.Feedback, row)
	}
	for _, s := range v.Steps {
		if s.State == StateOpen {
			continue
		}
		row := p.stepRow(book, s)
		row.Href = p.granted(p.link(RunbookPath(s.Page), "incident", v.Report.Incident.ID)) + anchorOf(s.Step)
		p.Done = append(p.Done, row)
	}
	for _, c := range v.Checks {
		p.Checks = append(p.Checks, p.check(c))
	}
	for _, h := range v.History {
		p.History = append(p.History, p.revision(h))
	}
	for _, s := range v.Seen {
		p.Seen = append(p.Seen, p.seenRow(book, s))
	}
	for _, id := range runbook.Required(runbook.Bottleneck) {
		p.Causes = append(p.Causes, option{Value: id, Text: p.words.title(axisBottleneck, id, "")})
	}
	slices.SortStableFunc(p.Causes, func(a, b option) int { return strings.Compare(a.Text, b.Text) })
	p.Runbook = p.runbookOf(v, book)
}

// runbookOf links to the runbook of the verdict, and of an inconclusive one to the page about that.
func (p *incidentPage) runbookOf(v IncidentView, book *runbook.Book) *runbookLink {
	id := p.M.Bottleneck.ID
	if p.M.Verdict != triage.CauseFound && p.M.Verdict != triage.NoBottleneck {
		id = "unknown"
	}
	pg, ok := book.Get(p.Lang(), id)
	if !ok {
		return nil
	}
	done := 0
	for _, s := range v.Steps {
		if s.Page == id && s.Step != "" && s.State != StateOpen {
			done++
		}
	}
	out := &runbookLink{
		Href:  p.granted(p.link(RunbookPath(id), "incident", v.Report.Incident.ID)),
		Title: pg.Title, Steps: p.N("incident.runbook.steps", len(pg.Steps)),
	}
	if done > 0 {
		out.Steps += ", " + p.N("incident.runbook.done", done)
	}
	return out
}

func (p page) revision(h Revision) historyRow {
	row := historyRow{At: p.at(h.At)}
	switch h.Verdict {
	case triage.CauseFound, triage.NoBottleneck:
		row.Text = p.words.title(axisBottleneck, h.Bottleneck, clean(h.Bottleneck))
		row.Percent = p.percent(h.Probability)
	default:
		row.Text = p.T("verdict.inconclusive")
	}
	if h.Verdict == triage.CauseFound && h.Trigger != "" && h.Trigger != "none" {
		row.Text += " ← " + p.words.title(axisTrigger, h.Trigger, clean(h.Trigger))
	}
	return row
}

func (p page) stepRow(book *runbook.Book, s StepRecord) recordRow {
	return recordRow{
		Tone: stateTones[s.State], State: p.state(s.State), Title: p.stepTitle(book, s.Page, s.Step),
		By: clean(s.By), At: p.at(s.At), Comment: notify.Clean(s.Comment, maxText),
	}
}

func (p page) seenRow(book *runbook.Book, s Seen) recordRow {
	row := p.stepRow(book, StepRecord{Page: s.Page, Step: s.Step, State: s.State, By: s.By, At: s.At, Comment: s.Comment})
	row.Href = p.link(IncidentPath(s.IncidentID))
	return row
}

func anchorOf(step string) string {
	if step == "" {
		return ""
	}
	return "#" + step
}

func posted(in []Posted) []Posted {
	var out []Posted
	for _, x := range in {
		out = append(out, Posted{Channel: clean(x.Channel), URL: outside(x.URL)})
	}
	return out
}

// anchors lists the sections that the page has.
func (p *incidentPage) anchors() {
	if len(p.Steps) > 0 {
		p.Anchors = append(p.Anchors, anchor{ID: "next", Text: p.NextTitle})
	}
	for _, x := range []struct {
		id, key string
		there   bool
	}{
		{"charts", "label.charts", p.Chart != nil},
		{"evidence", "label.evidence", len(p.Evidence)+len(p.ChangeFor) > 0},
		{"ranking", "incident.ranking", len(p.Bottlenecks) > 0},
		{"ruled-out", "label.ruled_out", len(p.M.RuledOut) > 0},
		{"gaps", "label.gaps", len(p.M.Gaps)+len(p.M.NotChecked) > 0},
		{"timeline", "label.timeline", len(p.M.Timeline) > 0},
		{"alerts", "label.alerts", len(p.Alerts.Rows) > 0},
		{"queries", "label.queries", len(p.Queries.Rows) > 0},
		{"feedback", "incident.feedback", true},
	} {
		if x.there {
			p.Anchors = append(p.Anchors, anchor{ID: x.id, Text: p.T(x.key)})
		}
	}
}
