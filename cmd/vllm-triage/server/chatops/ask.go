package chatops

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"vllm-triage/notify"
	"vllm-triage/notify/slack"
	"vllm-triage/promq"
	"vllm-triage/triage"
)

// errBusy says that too much is under way.
var errBusy = errors.New("too much is under way")

// question is a question without an alert. It fits into the value of a button, so that any replica can put it again and
// get the same answer: a triage depends on nothing else.
type question struct {
	Scope triage.Scope  `json:"s"`
	At    time.Time     `json:"t"`
	For   time.Duration `json:"f,omitempty"`
}

func (q question) encode() string {
	data, err := json.Marshal(q)
	if err != nil || len(data) > 1900 {
		return "" // A label of a thousand letters; the button is left out.
	}
	return string(data)
}

func decodeQuestion(s string) (question, bool) {
	var q question
	err := json.Unmarshal([]byte(s), &q)
	return q, err == nil && !q.At.IsZero() && q.For >= 0 && q.For <= maxFor
}

// reportsFresh is how long a report is kept for the buttons below it.
const reportsFresh = 30 * time.Minute

// ask puts a question to the engine, or remembers its answer.
func (s *Service) ask(ctx context.Context, set Settings, q question) (triage.Report, error) {
	key := q.encode()
	if r, fresh := s.reports.get(key, s.now()); fresh && key != "" {
		return r, nil
	}
	r, err := s.examine(ctx, set, triage.NewAdhoc(q.Scope, q.At, q.For))
	if err != nil {
		return triage.Report{}, err
	}
	r.Incident.ID = "" // There is no page of it, and nothing that feedback could be about.
	s.reports.put(key, r, s.now().Add(reportsFresh))
	return r, nil
}

// examine waits for its turn and asks the engine.
func (s *Service) examine(ctx context.Context, set Settings, in triage.Incident) (triage.Report, error) {
	select {
	case s.triages <- struct{}{}:
		defer func() { <-s.triages }()
	case <-ctx.Done():
		return triage.Report{}, errBusy
	}
	r, err := set.Engine.Triage(ctx, in)
	if err == nil && (len(r.Bottlenecks) == 0 || len(r.Triggers) == 0) {
		err = errors.New("the report is empty")
	}
	return r, err
}

// triage answers "what is up with this model".
func (s *Service) triage(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	set, w := s.settings(), who.words()
	at := cmd.At
	if at.IsZero() {
		at = p.issued
	}
	scope, notes, unclear := s.scope(ctx, set, who, cmd, at)
	if unclear != nil {
		s.private(ctx, p, *unclear)
		return Unclear
	}
	q := question{Scope: scope, At: at.UTC(), For: cmd.For}
	r, err := s.ask(ctx, set, q)
	if err != nil {
		s.log.Warn("triage for a command failed", zap.String("user", who.ID), zap.Error(err))
		s.private(ctx, p, says(ln(w.say("triage.failed", "why", why(w, err)))))
		return Failed
	}
	if !who.ZoneKnown && (!cmd.At.IsZero() || cmd.For > 0) {
		notes = append(notes, w.say("zone.unknown", "zone", who.Zone.String()))
	}
	if cmd.Share && set.Language != who.Language {
		notes = nil // They are for the person, in their language.
	}
	s.tell(ctx, p, card(set, who, q, r, notes, cmd.Share))
	return Done
}

// why says in a few words what stood in the way. Errors of promq name the server and the reason, and hold no secret; of
// others only the log tells.
func why(w *catalogue, err error) string {
	var e *promq.Error
	switch {
	case errors.As(err, &e):
		return notify.Clean(e.Error(), 300)
	case errors.Is(err, errBusy):
		return w.say("busy")
	case errors.Is(err, context.DeadlineExceeded):
		return w.say("why.slow")
	default:
		return w.say("why.log")
	}
}

// compose builds what people see of a report.
func compose(set Settings, r triage.Report, language string, zone *time.Location) notify.Message {
	o := set.Message
	o.Language, o.Location = language, zone
	return notify.NewMessage(r, o)
}

// The actions of an answer to a question.
const (
	actionDetails = "adhoc_details"
	actionShare   = "adhoc_share"
)

// card is the answer to a question. What all see is in the language and zone of the channel.
func card(set Settings, who Person, q question, r triage.Report, notes []string, public bool) answer {
	language, zone := who.Language, who.Zone
	if public {
		language, zone = set.Language, set.Zone
	}
	w := wordsIn(language)
	out := slack.Render(compose(set, r, language, zone), slack.View{})
	a := answer{text: out.Text, plain: out.Plain, blocks: out.Blocks, public: public}
	if public {
		by := says((&line{}).text(w.say("triage.asked_by") + " ").user(who.ID))
		_, blocks := by.content()
		a.blocks = withRoom(a.blocks, blocks...)
	}
	if len(notes) > 0 {
		a.blocks = withRoom(a.blocks, slackgo.NewContextBlock("", plainText(strings.Join(notes, " · "), 1000)))
	}
	if value := q.encode(); value != "" && !public {
		a.blocks = withRoom(a.blocks, slackgo.NewActionBlock("",
			button(actionDetails, w.say("button.details"), value), button(actionShare, w.say("button.share"), value)))
	}
	return a
}

// maxBlocks is Slack's limit for a message.
const maxBlocks = 50

// withRoom adds blocks as long as there is room.
func withRoom(blocks []slackgo.Block, more ...slackgo.Block) []slackgo.Block {
	if len(blocks)+len(more) > maxBlocks {
		return blocks
	}
	return append(slices.Clip(blocks), more...)
}

// details is the evidence behind the answer to a question.
func details(set Settings, who Person, r triage.Report) answer {
	m := compose(set, r, who.Language, who.Zone).As(notify.KindDetails)
	out := slack.Render(m, slack.View{Charts: slack.TextCharts})
	return answer{text: out.Text, plain: out.Plain, blocks: out.Blocks}
}

// scope decides which series a question is about. Notes say what was assumed; unclear asks back.
func (s *Service) scope(
	ctx context.Context, set Settings, who Person, cmd Command, at time.Time,
) (scope triage.Scope, notes []string, unclear *reply) {
	w := who.words()
	scope = triage.Scope{Namespace: cmd.Namespace, Cluster: cmd.Cluster, Instance: cmd.Instance, Pod: cmd.Pod}
	all, complete := s.known(ctx, set, at)
	within := all
	if cmd.Namespace != "" && complete {
		within = nil
		for _, m := range all {
			if m.Namespace == cmd.Namespace {
				within = append(within, m)
			}
		}
	}
	served := names(within)
	if cmd.Model == "" {
		switch {
		case scope != triage.Scope{} || len(served) == 0:
			return scope, nil, nil // The labels given, or the data, decide.
		case len(served) == 1:
			scope.Model = served[0]
			return scope, nil, nil
		default:
			r := which(w, w.say("triage.which"), served)
			return scope, nil, &r
		}
	}
	found, meantModels := pick(cmd.Model, served)
	switch {
	case found != "":
		scope.Model = found
		if found != cmd.Model {
			notes = append(notes, w.say("triage.taken", "model", found))
		}
		if spaces := namespaces(within, found); len(spaces) > 1 && cmd.Namespace == "" {
			notes = append(notes, w.say("triage.namespaces", "list", strings.Join(spaces, ", ")))
		}
		return scope, notes, nil
	case len(meantModels) > 0:
		r := which(w, w.say("triage.no_model", "model", cmd.Model), meantModels)
		if cmd.Likely != "" {
			r.lines = append(r.lines, meant(w, []string{"/vllm-triage " + cmd.Likely}))
		}
		return scope, nil, &r
	case cmd.Likely != "":
		r := says(ln(w.say("triage.no_model", "model", cmd.Model)), meant(w, []string{"/vllm-triage " + cmd.Likely}))
		return scope, nil, &r
	case complete && len(served) > 0:
		r := which(w, w.say("triage.no_model", "model", cmd.Model), served)
		return scope, nil, &r
	default:
		// Nobody knows which models there are: the report tells whether this one has data.
		scope.Model = cmd.Model
		if !complete {
			notes = append(notes, w.say("triage.unchecked"))
		}
		return scope, notes, nil
	}
}

// namespaces lists where a model is served, sorted.
func namespaces(models []Model, name string) []string {
	var out []string
	for _, m := range models {
		if m.Name == name && m.Namespace != "" {
			out = append(out, m.Namespace)
		}
	}
	return out
}

// maxListed is how many rows a list in an answer has.
const maxListed = 15

// which asks which of some models is meant.
func which(w *catalogue, question string, models []string) reply {
	r := says(ln(question))
	for _, m := range models[:min(len(models), maxListed)] {
		r.lines = append(r.lines, (&line{}).text("• ").code("/vllm-triage "+quoteWord(m)))
	}
	if more := len(models) - maxListed; more > 0 {
		r.lines = append(r.lines, ln(w.say("more", "n", strconv.Itoa(more))))
	}
	return r
}

// quoteWord is a name as it must be typed.
func quoteWord(s string) string {
	if strings.Contains(s, " ") {
		return `"` + s + `"`
	}
	if _, verb := spoken[strings.ToLower(s)]; verb {
		return "model=" + s
	}
	return s
}
