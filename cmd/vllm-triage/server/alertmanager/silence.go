package alertmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"vllm-triage/notify"
)

// Tag begins the comment of every silence of this service, so that it can tell its own from others'.
const Tag = "[vllm-triage]"

// Limits of a silence's texts, in runes.
const (
	maxCreatedBy = 120
	maxComment   = 500
)

// The states of a silence.
const (
	StateActive  = "active"
	StatePending = "pending"
	StateExpired = "expired"
)

// Silence is a silence as Alertmanager keeps it.
type Silence struct {
	ID        string
	State     string
	Matchers  []Matcher
	StartsAt  time.Time
	EndsAt    time.Time
	CreatedBy string
	Comment   string
}

// Covers says whether the silence has the same matchers and lasts at least until a time.
func (s Silence) Covers(ms []Matcher, until time.Time) bool {
	return !s.EndsAt.Before(until) && sameMatchers(s.Matchers, ms)
}

// sameMatchers compares two sets of matchers, in any order.
func sameMatchers(a, b []Matcher) bool {
	text := func(ms []Matcher) []string {
		out := make([]string, 0, len(ms))
		for _, m := range ms {
			out = append(out, m.String())
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(text(a), text(b))
}

// The wire forms of the v2 API.
type (
	wireMatcher struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		IsRegex bool   `json:"isRegex"`
		// IsEqual is absent in answers of Alertmanager before 0.22, where it is always true.
		IsEqual *bool `json:"isEqual,omitempty"`
	}
	wireSilence struct {
		ID        string        `json:"id,omitempty"`
		Matchers  []wireMatcher `json:"matchers"`
		StartsAt  time.Time     `json:"startsAt"`
		EndsAt    time.Time     `json:"endsAt"`
		CreatedBy string        `json:"createdBy"`
		Comment   string        `json:"comment"`
		Status    *wireStatus   `json:"status,omitempty"`
	}
	wireStatus struct {
		State string `json:"state"`
	}
)

func (w wireSilence) silence() Silence {
	s := Silence{
		ID: w.ID, StartsAt: w.StartsAt.UTC(), EndsAt: w.EndsAt.UTC(), CreatedBy: w.CreatedBy, Comment: w.Comment,
	}
	if w.Status != nil {
		s.State = w.Status.State
	}
	for _, m := range w.Matchers {
		s.Matchers = append(s.Matchers, Matcher{
			Name: m.Name, Value: m.Value, Regex: m.IsRegex, Negated: m.IsEqual != nil && !*m.IsEqual,
		})
	}
	return s
}

// CreateSilence makes a silence and returns its id. createdBy is who wants it; comment says why and should begin with Tag.
// Refused are matchers that are too broad, an end that is not after the start, and more than the longest time allowed. When
// an answer was lost, the silence is looked for before it is made again, so a call makes one silence or none.
func (c *Client) CreateSilence(
	ctx context.Context, matchers []Matcher, start, end time.Time, createdBy, comment string,
) (id string, err error) {
	const op = "create silence"
	createdBy, comment = notify.Clean(createdBy, maxCreatedBy), notify.Clean(comment, maxComment)
	refuse := func(k Kind, err error) (string, error) { return "", &Error{Kind: k, Op: op, Err: err} }
	// Alertmanager keeps milliseconds; so does what is looked for.
	start, end = start.UTC().Truncate(time.Millisecond), end.UTC().Truncate(time.Millisecond)
	switch {
	case createdBy == "" || comment == "":
		return refuse(Refused, errors.New("it needs a creator and a comment"))
	case !end.After(start):
		return refuse(Refused, errors.New("it must end after it starts"))
	case end.Sub(start) > c.maxSilence:
		return refuse(TooBroad, fmt.Errorf("it lasts %s; the longest allowed is %s", end.Sub(start), c.maxSilence))
	}
	if err := narrow(matchers); err != nil {
		return refuse(TooBroad, err)
	}
	want := wireSilence{StartsAt: start, EndsAt: end, CreatedBy: createdBy, Comment: comment}
	for _, m := range matchers {
		equal := !m.Negated
		want.Matchers = append(want.Matchers, wireMatcher{Name: m.Name, Value: m.Value, IsRegex: m.Regex, IsEqual: &equal})
	}
	var last *Error
	var failed []*Error
	doubtful := false
	for _, p := range c.order() {
		if doubtful {
			if id, found := c.lookUp(ctx, p, want, matchers); found {
				return id, nil
			}
		}
		var got struct {
			SilenceID string `json:"silenceID"`
		}
		last = c.ask(ctx, p, request{op: op, method: http.MethodPost, path: "/silences", body: want, out: &got})
		if last == nil && got.SilenceID == "" {
			last = &Error{Kind: BadResponse, Op: op, Target: target(p.base), Maybe: true, Err: errors.New("no silence id came back")}
		}
		if last == nil {
			return got.SilenceID, nil
		}
		failed = append(failed, last)
		doubtful = doubtful || last.Maybe
		if !last.elsewhere() {
			break
		}
	}
	if doubtful {
		for _, p := range c.order() {
			if id, found := c.lookUp(ctx, p, want, matchers); found {
				return id, nil
			}
		}
	}
	last.Maybe = doubtful
	return "", last.beside(failed)
}

// lookUp looks for a silence whose making was not answered. Creator, comment, matchers and the end to the millisecond make
// it the same one.
func (c *Client) lookUp(ctx context.Context, p *peer, want wireSilence, matchers []Matcher) (id string, found bool) {
	var got []wireSilence
	if e := c.ask(ctx, p, request{op: "look for silence", method: http.MethodGet, path: "/silences", out: &got}); e != nil {
		return "", false
	}
	for _, w := range got {
		s := w.silence()
		if s.State != StateExpired && s.CreatedBy == want.CreatedBy && s.Comment == want.Comment &&
			s.EndsAt.Equal(want.EndsAt) && sameMatchers(s.Matchers, matchers) {
			return s.ID, true
		}
	}
	return "", false
}

// ListSilences lists silences, the soonest to end first. active leaves out those that are over; tag is what the comment
// must begin with, empty for any.
func (c *Client) ListSilences(ctx context.Context, active bool, tag string) ([]Silence, error) {
	var got []wireSilence
	if err := c.any(ctx, request{op: "list silences", method: http.MethodGet, path: "/silences", out: &got}); err != nil {
		return nil, err
	}
	var out []Silence
	for _, w := range got {
		s := w.silence()
		if active && s.State == StateExpired || !strings.HasPrefix(s.Comment, tag) {
			continue
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Silence) int {
		return cmp.Or(a.EndsAt.Compare(b.EndsAt), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// silencePath is where single silences are.
const silencePath = "/silence/"

var silenceID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// Silence returns one silence.
func (c *Client) Silence(ctx context.Context, id string) (Silence, error) {
	const op = "read silence"
	if !silenceID.MatchString(id) {
		return Silence{}, &Error{Kind: NotFound, Op: op, Err: errors.New("that is no silence's id")}
	}
	var got wireSilence
	if err := c.any(ctx, request{op: op, method: http.MethodGet, path: silencePath + id, out: &got}); err != nil {
		return Silence{}, err
	}
	return got.silence(), nil
}

// ExpireSilence ends a silence now. One that is over already is an error of kind Expired, one that no peer knows NotFound.
func (c *Client) ExpireSilence(ctx context.Context, id string) error {
	const op = "expire silence"
	// Versions differ in what they say to the end of a silence that is over (200, 404, 500), so the silence is read first.
	s, err := c.Silence(ctx, id)
	if err != nil {
		return err
	}
	if s.State == StateExpired {
		return &Error{Kind: Expired, Op: op, Err: errors.New("the silence is over already")}
	}
	return c.any(ctx, request{op: op, method: http.MethodDelete, path: silencePath + id})
}
