package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// EventType is the type of the metadata that every message carries.
const EventType = "vllm_triage"

// Defaults of Config.
const (
	DefaultTimeout = 10 * time.Second
	DefaultPace    = time.Second
)

// Config is what a notifier needs.
type Config struct {
	// Token returns the bot token ("xoxb-…"). It is asked before every call, so a token in a file can change.
	Token func() (string, error)
	// APIURL is the Web API's address; empty is Slack's.
	APIURL string
	// Timeout bounds each HTTP call; 0 is DefaultTimeout.
	Timeout time.Duration
	// Pace is the least time between two messages to one channel; 0 is DefaultPace, which is what Slack allows.
	Pace time.Duration
	// Transport carries the calls; nil is Go's default (with the proxy of the environment).
	Transport http.RoundTripper
	View      View
	// Broadcast shows KindResolved replies in the channel too.
	Broadcast bool
	// OnFallback is told when Slack refused the blocks and the message went out as plain text. It may be nil.
	OnFallback func(kind notify.Kind, refused error)
}

// Notifier posts to Slack as an app. It is safe for concurrent use.
type Notifier struct {
	c      Config
	client *http.Client
	pacer  *pacer

	learned *learned
}

var (
	_ notify.Notifier    = (*Notifier)(nil)
	_ notify.Illustrator = (*Notifier)(nil)
	_ notify.Finder      = (*Notifier)(nil)
)

// New returns a notifier. It makes no call; see Check.
func New(c Config) (*Notifier, error) {
	if c.Token == nil {
		return nil, errors.New("slack: a bot token is needed")
	}
	if c.APIURL == "" {
		c.APIURL = slackgo.APIURL
	}
	if !strings.HasSuffix(c.APIURL, "/") {
		c.APIURL += "/"
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Pace <= 0 {
		c.Pace = DefaultPace
	}
	l := &learned{}
	return &Notifier{
		c: c, learned: l,
		client: &http.Client{
			Timeout:   c.Timeout,
			Transport: &transport{next: c.Transport, seen: l.see},
			// A login page of a proxy is no answer, and the token in the body must not follow a redirect.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		pacer: newPacer(c.Pace),
	}, nil
}

// Name implements notify.Notifier.
func (n *Notifier) Name() string { return "slack" }

// Post implements notify.Notifier. Channel is an id (C…, G…, D…) or, in workspaces where the bot can see it, a name.
func (n *Notifier) Post(ctx context.Context, channel string, m notify.Message) (notify.Ref, error) {
	return n.post(ctx, channel, "", m)
}

// Reply implements notify.Notifier. When somebody deleted the root, Slack posts a reply into the channel and calls that
// a success; such a stray is taken back and the root reported as gone.
func (n *Notifier) Reply(ctx context.Context, ref notify.Ref, m notify.Message) (notify.Ref, error) {
	return n.post(ctx, ref.Channel, ref.ID, m)
}

func (n *Notifier) post(ctx context.Context, channel, thread string, m notify.Message) (notify.Ref, error) {
	var ref notify.Ref
	err := n.send(ctx, channel, m, func(c call, content slackgo.MsgOption) error {
		options := []slackgo.MsgOption{content, slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}
		if thread != "" {
			options = append(options, slackgo.MsgOptionTS(thread))
			if m.Broadcast || n.c.Broadcast && m.Kind == notify.KindResolved {
				options = append(options, slackgo.MsgOptionBroadcast())
			}
		}
		id, ts, posted, err := c.api.PostMessageWithResponseContext(c.ctx, channel, options...)
		if err != nil {
			return err
		}
		ref = notify.Ref{Channel: id, ID: ts}
		if thread != "" && posted.ThreadTimestamp == "" {
			return n.takeBack(c, ref)
		}
		return nil
	})
	if err != nil {
		return notify.Ref{}, err
	}
	return ref, nil
}

// errStray says that a reply landed in the channel because its root is gone.
var errStray = errors.New("the root message was deleted")

func (n *Notifier) takeBack(c call, stray notify.Ref) error {
	if _, _, err := c.api.DeleteMessageContext(c.ctx, stray.Channel, stray.ID); err != nil {
		return fmt.Errorf("%w, and the reply that went astray could not be removed: %w", errStray, err)
	}
	return errStray
}

// Update implements notify.Notifier. Editing twice does no harm, so its errors are never Maybe.
func (n *Notifier) Update(ctx context.Context, ref notify.Ref, m notify.Message) error {
	err := n.send(ctx, ref.Channel, m, func(c call, content slackgo.MsgOption) error {
		_, _, _, err := c.api.UpdateMessageContext(c.ctx, ref.Channel, ref.ID, content)
		return err
	})
	if failure, ok := errors.AsType[*notify.Error](err); ok {
		failure.Maybe = false
	}
	return err
}

// call is one attempt.
type call struct {
	ctx  context.Context
	api  *slackgo.Client
	sent *sent
}

// send renders a message and hands it to do, waiting for the channel's turn first. When Slack refuses the blocks, they go
// out without its own charts if there are some, which not every workspace has; else, and when that is refused too, the plain
// text goes out, once.
func (n *Notifier) send(
	ctx context.Context, channel string, m notify.Message, do func(call, slackgo.MsgOption) error,
) error {
	v := n.view(m)
	r := Render(m, v)
	about := slackgo.MsgOptionMetadata(metadata(m))
	rich := slackgo.MsgOptionCompose(
		slackgo.MsgOptionText(r.Text, false), slackgo.MsgOptionBlocks(r.Blocks...), about)
	refused := n.try(ctx, channel, rich, do)
	if n.c.View.Charts == AutoCharts && refused != nil && refused.Reason == notify.Rejected && hasNative(r) {
		v.Charts = TextCharts
		r = Render(m, v)
		rich = slackgo.MsgOptionCompose(
			slackgo.MsgOptionText(r.Text, false), slackgo.MsgOptionBlocks(r.Blocks...), about)
		refused = n.try(ctx, channel, rich, do)
		n.learned.noNative.Store(refused == nil)
	}
	if refused == nil || refused.Reason != notify.Rejected {
		return orNil(refused)
	}
	if n.c.OnFallback != nil {
		n.c.OnFallback(m.Kind, refused)
	}
	if strings.Contains(refused.Err.Error(), "metadata") {
		about = slackgo.MsgOptionCompose()
	}
	// An empty list clears the blocks of a message that is edited.
	plainText := slackgo.MsgOptionCompose(
		slackgo.MsgOptionText(r.Plain, false), slackgo.MsgOptionBlocks(), about)
	return orNil(n.try(ctx, channel, plainText, do))
}

// orNil keeps a nil *notify.Error from becoming an error that is not nil.
func orNil(e *notify.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func (n *Notifier) try(
	ctx context.Context, channel string, content slackgo.MsgOption, do func(call, slackgo.MsgOption) error,
) *notify.Error {
	if failure := n.pacer.wait(ctx, channel); failure != nil {
		return failure
	}
	c, failure := n.call(ctx)
	if failure != nil {
		return failure
	}
	failure = classify(do(c, content), c.sent)
	if failure != nil && failure.Reason == notify.RateLimited && failure.Retryable {
		n.pacer.block(channel, failure.After)
	}
	return failure
}

// call makes a client for one call, with the token of the moment.
func (n *Notifier) call(ctx context.Context) (call, *notify.Error) {
	token, err := n.c.Token()
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	if err != nil {
		return call{}, &notify.Error{
			Reason: notify.Auth, Err: fmt.Errorf("read bot token: %w", err), Hint: "set slack.bot_token or its file",
		}
	}
	ctx, s := watch(ctx)
	api := slackgo.New(strings.TrimSpace(token), slackgo.OptionAPIURL(n.c.APIURL), slackgo.OptionHTTPClient(n.client))
	return call{ctx: ctx, api: api, sent: s}, nil
}
