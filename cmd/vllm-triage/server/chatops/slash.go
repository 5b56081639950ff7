package chatops

import (
	"context"
	"strings"
	"time"

	"go.uber.org/zap"
)

// slash is a slash command as Slack sends it.
type slash struct {
	Team        string `json:"team_id"`
	Channel     string `json:"channel_id"`
	User        string `json:"user_id"`
	UserName    string `json:"user_name"`
	Text        string `json:"text"`
	ResponseURL string `json:"response_url"`
}

func (in slash) valid() bool { return isUser(in.User) && in.Channel != "" }

// act is what a verb does, for permissions and counters.
func (v Verb) act() Act {
	switch v {
	case Models:
		return ActModels
	case Incidents:
		return ActIncidents
	case Explain:
		return ActExplain
	case Silences:
		return ActSilences
	case Help:
		return ActHelp
	default:
		return ActTriage
	}
}

// onSlash understands a command and answers at once; what it asks for comes later.
func (s *Service) onSlash(ctx context.Context, in slash) outcome {
	ctx, cancel := context.WithTimeout(ctx, prompt)
	defer cancel()
	who := s.person(ctx, in.User, in.UserName)
	w := who.words()
	if s.closing.Load() || s.busy() {
		s.reject(EndpointSlash, RejectedBusy, errBusy)
		return outcome{body: ephemeral(says(ln(w.say("busy"))))}
	}
	cmd, mistake := ParseCommand(in.Text, s.now(), who.Zone)
	if mistake != nil {
		s.metrics.Handled(ActTriage, Unclear)
		return outcome{body: ephemeral(mistaken(w, mistake))}
	}
	act := cmd.Verb.act()
	s.log.Info("slash command", zap.String("user", in.User), zap.String("channel", in.Channel), zap.String("verb", string(cmd.Verb)))
	if cmd.Verb == Help {
		s.metrics.Handled(act, Done)
		return outcome{body: ephemeral(s.help(who))}
	}
	for _, a := range []Act{act, ActShare} {
		if a == ActShare && !cmd.Share {
			continue
		}
		if ok, why := s.may(ctx, a, in.User, in.Channel); !ok {
			s.metrics.Handled(a, Denied)
			return outcome{body: ephemeral(denied(w, a, why))}
		}
	}
	key := strings.Join([]string{in.Team, in.Channel, in.User, strings.Join(words(normalise(in.Text)), " ")}, "\x00")
	if !s.commands.first(key, s.now(), repeatWindow) {
		s.metrics.Handled(act, Repeated)
		return outcome{body: ephemeral(says(ln(w.say("slash.repeated"))))}
	}
	p := s.place(in.ResponseURL, in.Channel, in.User, "")
	var body any
	if cmd.Verb == Triage {
		body = ephemeral(looking(who, cmd, s.now()))
	}
	return outcome{body: body, after: []task{func(ctx context.Context) {
		o := s.command(ctx, p, who, cmd)
		if o != Done {
			s.commands.forget(key) // Trying again is what the person wants then.
		}
		s.metrics.Handled(act, o)
	}}}
}

// command does what a command asks for.
func (s *Service) command(ctx context.Context, p *place, who Person, cmd Command) Outcome {
	switch cmd.Verb {
	case Models:
		return s.listModels(ctx, p, who, cmd)
	case Incidents:
		return s.listIncidents(ctx, p, who, cmd)
	case Explain:
		return s.explain(ctx, p, who, cmd)
	case Silences:
		return s.listSilences(ctx, p, who, cmd)
	default:
		return s.triage(ctx, p, who, cmd)
	}
}

// answer tells a person something, or everybody if that was asked for.
func (s *Service) answer(ctx context.Context, p *place, cmd Command, r reply) {
	text, blocks := r.content()
	s.tell(ctx, p, answer{text: text, plain: text, blocks: blocks, public: cmd.Share})
}

// mistaken says what was not understood, and what may have been meant.
func mistaken(w *catalogue, m *Mistake) reply {
	r := says(ln(w.say(m.Key, "word", m.Word)))
	if len(m.Near) > 0 {
		r.lines = append(r.lines, meant(w, m.Near))
	}
	r.lines = append(r.lines, ln(w.say("mistake.help")))
	return r
}

// meant asks whether one of some words was meant.
func meant(w *catalogue, words []string) *line {
	l := ln(w.say("meant") + " ")
	for i, x := range words {
		if i > 0 {
			l.text(", ")
		}
		l.code(x)
	}
	return l.text("?")
}

func denied(w *catalogue, a Act, why string) reply {
	return says(ln(w.say(why, "act", w.say("act."+string(a)))), ln(w.say("denied.next")))
}

// looking says what the answer will be about.
func looking(who Person, cmd Command, now time.Time) reply {
	w, f := who.words(), who.format(now)
	l := ln(w.say("slash.looking") + " ")
	if cmd.Model == "" {
		l.text(w.say("slash.everything"))
	} else {
		l.bold(cmd.Model)
	}
	for _, x := range [][2]string{
		{"ns", cmd.Namespace}, {"cluster", cmd.Cluster}, {"instance", cmd.Instance}, {"pod", cmd.Pod},
	} {
		if x[1] != "" {
			l.text(" · ").code(x[0] + "=" + x[1])
		}
	}
	if !cmd.At.IsZero() {
		l.text(" · " + w.say("slash.at", "clock", f.Clock(cmd.At)))
	}
	if cmd.For > 0 {
		l.text(" · " + w.say("slash.for", "duration", f.Duration(cmd.For)))
	}
	return says(l.text(" …"))
}

// help shows what can be typed.
func (s *Service) help(who Person) reply {
	w := who.words()
	r := says((&line{}).bold(w.say("help.title")))
	for _, x := range [][2]string{
		{"/vllm-triage [model] [for 30m] [at 14:05] [--share]", "help.triage"},
		{"/vllm-triage llama-70b ns=prod since 14:00", "help.narrow"},
		{"/vllm-triage models", "help.models"},
		{"/vllm-triage incidents [model] [firing]", "help.incidents"},
		{"/vllm-triage explain kv_cache_exhaustion", "help.explain"},
		{"/vllm-triage silences", "help.silences"},
	} {
		r.lines = append(r.lines, (&line{}).text("• ").code(x[0]).text("  "+w.say(x[1])))
	}
	zone := w.say("help.zone", "zone", who.Zone.String())
	if !who.ZoneKnown {
		zone = w.say("zone.unknown", "zone", who.Zone.String())
	}
	r.lines = append(r.lines, ln(zone))
	return r
}
