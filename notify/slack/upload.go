package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// Slack's limits of a picture's texts.
const (
	maxFileTitle = 255
	maxAltText   = 1000
)

// Illustrate implements notify.Illustrator: it uploads a picture into the thread of a message. It needs the scope
// files:write, and the id of the channel as the post returned it; names are refused here.
func (n *Notifier) Illustrate(ctx context.Context, ref notify.Ref, p notify.Picture) error {
	if len(p.PNG) == 0 {
		return &notify.Error{Reason: notify.Rejected, Err: errors.New("upload picture: it is empty")}
	}
	if failure := n.pacer.wait(ctx, ref.Channel); failure != nil {
		return failure
	}
	c, failure := n.call(ctx)
	if failure != nil {
		return failure
	}
	_, err := c.api.UploadFileContext(c.ctx, slackgo.UploadFileParameters{
		Reader:          bytes.NewReader(p.PNG),
		FileSize:        len(p.PNG),
		Filename:        p.Filename,
		Title:           cut(plain(p.Title), maxFileTitle),
		AltTxt:          cut(plain(p.AltText), maxAltText),
		Channel:         ref.Channel,
		ThreadTimestamp: ref.ID,
	})
	if err != nil {
		err = fmt.Errorf("upload picture: %w", err)
	}
	failure = classify(err, c.sent)
	if failure != nil && failure.Reason == notify.RateLimited && failure.Retryable {
		n.pacer.block(ref.Channel, failure.After)
	}
	if failure != nil && failure.Reason == notify.Auth {
		n.learned.noUpload.Store(true) // Charts are shown inside the messages from now on.
	}
	return orNil(failure)
}
