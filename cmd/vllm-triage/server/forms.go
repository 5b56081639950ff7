package server

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify"
	"vllm-triage/triage/store"
)

// form reads a form about an incident: from a reader who may see it, with the token that its page held.
func (s *Server) form(c echo.Context) (reader, store.Incident, error) {
	c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, 64<<10)
	id := c.Param("id")
	r, ok := s.readerOf(c, id)
	if !ok {
		return r, store.Incident{}, errSignIn
	}
	if err := c.Request().ParseForm(); err != nil {
		return r, store.Incident{}, echo.NewHTTPError(http.StatusBadRequest, "the form could not be read")
	}
	if !same(c.Request().PostForm.Get(web.FieldToken), s.formToken(r, id)) {
		return r, store.Incident{}, echo.NewHTTPError(http.StatusForbidden, "the form is too old: open the page again")
	}
	in, _, err := s.store.Incident(c.Request().Context(), id)
	return r, in, notFound(err, "there is no such incident any more")
}

// back leads from a form to the page it came from.
func (s *Server) back(c echo.Context, r reader, incident, page, step string) error {
	q := url.Values{}
	if r.grant != "" {
		if grant, err := url.ParseQuery(r.grant); err == nil {
			q = grant
		}
	}
	if lang := c.QueryParam("lang"); lang != "" {
		q.Set("lang", lang)
	}
	to := web.IncidentPath(incident)
	if page != "" {
		to = web.RunbookPath(page)
		q.Set("incident", incident)
	}
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	if step != "" {
		to += "#" + url.PathEscape(step)
	}
	return c.Redirect(http.StatusSeeOther, to)
}

func (r reader) who() string { return cmp.Or(r.name, "someone with the link") }

func comment(c echo.Context) string {
	return notify.Clean(c.Request().PostForm.Get(web.FieldComment), web.MaxComment)
}

// feedbackForm keeps what somebody thinks of the verdict.
func (s *Server) feedbackForm(c echo.Context) error {
	r, in, err := s.form(c)
	if err != nil {
		return err
	}
	form := c.Request().PostForm
	opinion := form.Get(web.FieldOpinion)
	cause := form.Get(web.FieldCause)
	if !slices.Contains([]string{web.OpinionRight, web.OpinionNotQuite, web.OpinionWrong}, opinion) {
		return echo.NewHTTPError(http.StatusBadRequest, "choose right, not quite or wrong")
	}
	if _, ok := s.Parts().Knowledge.Cause(cause); cause != "" && cause != "other" && !ok {
		return echo.NewHTTPError(http.StatusBadRequest, "there is no such cause")
	}
	if err := s.store.SaveFeedback(c.Request().Context(), store.Feedback{
		IncidentID: in.ID, Author: r.who(), At: s.now(), Opinion: strings.ReplaceAll(opinion, web.OpinionNotQuite, "partly"),
		Cause: cause, Comment: comment(c),
	}); err != nil {
		return err
	}
	return s.back(c, r, in.ID, "", "")
}

// stepForm keeps what became of a runbook's step, or of the runbook as a whole, and says so in the thread.
func (s *Server) stepForm(c echo.Context) error {
	r, in, err := s.form(c)
	if err != nil {
		return err
	}
	form := c.Request().PostForm
	page, step, state := form.Get(web.FieldPage), form.Get(web.FieldStep), form.Get(web.FieldState)
	book, ok := s.Parts().Runbooks.Get("en", page)
	if !ok {
		return echo.NewHTTPError(http.StatusBadRequest, "there is no such runbook")
	}
	title := book.Title
	if step != "" {
		x, ok := book.Step(step)
		if !ok {
			return echo.NewHTTPError(http.StatusBadRequest, "the runbook has no such step")
		}
		title = x.Title
	}
	if !slices.Contains([]string{
		web.StateOpen, web.StateDone, web.StateSkipped, web.StateHelped, web.StateDidNotHelp, web.StateOther,
	}, state) {
		return echo.NewHTTPError(http.StatusBadRequest, "there is no such state of a step")
	}
	now := s.now()
	ctx := c.Request().Context()
	if err := s.store.SaveStep(ctx, store.Step{
		IncidentID: in.ID, Cause: page, Step: step, Author: r.who(), At: now, State: state, Note: comment(c),
	}); err != nil {
		return err
	}
	line := strings.ReplaceAll(state, "_", " ") + ": " + title
	if text := comment(c); text != "" {
		line += " — " + text
	}
	if err := s.addNote(ctx, in.ID, "step-"+page+"-"+step+"-"+state, r.who(), line); err != nil {
		return err
	}
	return s.back(c, r, in.ID, page, step)
}

// recheckForm asks the same questions again now. The new report, with the values of before and now, reaches page and
// thread the way every report does.
func (s *Server) recheckForm(c echo.Context) error {
	r, in, err := s.form(c)
	if err != nil {
		return err
	}
	form := c.Request().PostForm
	page, step := form.Get(web.FieldPage), form.Get(web.FieldStep)
	if page != "" {
		book, ok := s.Parts().Runbooks.Get("en", page)
		if ok && step != "" {
			_, ok = book.Step(step)
		}
		if !ok {
			return echo.NewHTTPError(http.StatusBadRequest, "there is no such runbook or step")
		}
	}
	if err := s.Recheck(c.Request().Context(), in.ID, r.who(), page, step); err != nil {
		return err
	}
	return s.back(c, r, in.ID, page, step)
}
