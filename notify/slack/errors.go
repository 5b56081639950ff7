package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"vllm-triage/notify"
)

// blindWait is how long to wait when Slack limits the rate and does not say for how long.
const blindWait = 30 * time.Second

// class is what an error code of Slack means for us.
type class struct {
	reason    notify.Reason
	retryable bool
	maybe     bool
	hint      string
}

const inviteHint = "invite the bot to the channel: /invite @vllm-triage, or grant it chat:write.public"

// codes classes the errors of the methods that are used here, as listed in their documentation
// (https://docs.slack.dev/reference/methods/chat.postMessage#errors and so on).
var codes = map[string]class{
	"ratelimited":  {reason: notify.RateLimited, retryable: true},
	"rate_limited": {reason: notify.RateLimited, retryable: true},
	// Plan limits: waiting does not help.
	"message_limit_exceeded": {reason: notify.RateLimited, hint: "the workspace has used up its plan's messages"},

	"message_not_found":       {reason: notify.MessageGone, hint: "the message was deleted; a new one is posted"},
	"cant_update_message":     {reason: notify.MessageGone, hint: "the message cannot be edited; a new one is posted"},
	"edit_window_closed":      {reason: notify.MessageGone, hint: "the workspace no longer lets it be edited; a new one is posted"},
	"thread_not_found":        {reason: notify.MessageGone, hint: "the thread is gone; a new message is posted"},
	"invalid_thread_ts":       {reason: notify.MessageGone, hint: "the thread is gone; a new message is posted"},
	"cannot_reply_to_message": {reason: notify.MessageGone, hint: "the thread takes no replies; a new message is posted"},

	"not_in_channel":                           {reason: notify.ChannelGone, hint: inviteHint},
	"channel_not_found":                        {reason: notify.ChannelGone, hint: "check the channel's id; into a private channel invite the bot: /invite @vllm-triage"},
	"is_archived":                              {reason: notify.ChannelGone, hint: "unarchive the channel or route to another one"},
	"restricted_action":                        {reason: notify.ChannelGone, hint: "a workspace setting forbids apps to post there"},
	"restricted_action_read_only_channel":      {reason: notify.ChannelGone, hint: "the channel is read-only; allow the app to post"},
	"restricted_action_non_threadable_channel": {reason: notify.ChannelGone, hint: "the channel does not allow threads"},
	"restricted_action_thread_only_channel":    {reason: notify.ChannelGone, hint: "the channel allows replies in threads only"},
	"restricted_action_thread_locked":          {reason: notify.MessageGone, hint: "the thread is locked; a new message is posted"},
	"team_access_not_granted":                  {reason: notify.Auth, hint: "the app is not approved for this workspace"},
	"external_channel_migrating":               {reason: notify.Unavailable, retryable: true},

	"invalid_auth":             {reason: notify.Auth, hint: "the bot token is wrong: copy it again from the app's OAuth page"},
	"not_authed":               {reason: notify.Auth, hint: "no token was sent: set slack.bot_token or its file"},
	"account_inactive":         {reason: notify.Auth, hint: "the bot's account was deleted: reinstall the app"},
	"token_revoked":            {reason: notify.Auth, hint: "the token was revoked: reinstall the app"},
	"token_expired":            {reason: notify.Auth, hint: "the token has expired: token rotation is not supported, switch it off"},
	"missing_scope":            {reason: notify.Auth, hint: "grant the missing scope and reinstall the app"},
	"no_permission":            {reason: notify.Auth, hint: "the token lacks a permission: reinstall the app from its manifest"},
	"not_allowed_token_type":   {reason: notify.Auth, hint: "use the bot token, which begins with xoxb-"},
	"org_login_required":       {reason: notify.Auth, hint: "the workspace is moving to an organisation: reinstall the app there"},
	"ekm_access_denied":        {reason: notify.Auth, hint: "an administrator suspended posting"},
	"access_denied":            {reason: notify.Auth, hint: "access was denied: reinstall the app"},
	"accesslimited":            {reason: notify.Auth, hint: "the workspace does not allow this network"},
	"enterprise_is_restricted": {reason: notify.Auth, hint: "the organisation does not allow this method"},

	"invalid_blocks":                 {reason: notify.Rejected},
	"invalid_blocks_format":          {reason: notify.Rejected},
	"msg_blocks_too_long":            {reason: notify.Rejected},
	"msg_too_long":                   {reason: notify.Rejected},
	"no_text":                        {reason: notify.Rejected},
	"invalid_attachments":            {reason: notify.Rejected},
	"too_many_attachments":           {reason: notify.Rejected},
	"invalid_metadata_format":        {reason: notify.Rejected},
	"invalid_metadata_schema":        {reason: notify.Rejected},
	"metadata_too_large":             {reason: notify.Rejected},
	"metadata_must_be_sent_from_app": {reason: notify.Rejected},
	"invalid_arguments":              {reason: notify.Rejected},

	// Slack says that such a call may have done its work.
	"internal_error":      {reason: notify.Unavailable, retryable: true, maybe: true},
	"fatal_error":         {reason: notify.Unavailable, retryable: true, maybe: true},
	"request_timeout":     {reason: notify.TimedOut, retryable: true, maybe: true},
	"service_unavailable": {reason: notify.Unavailable, retryable: true},
	"team_added_to_org":   {reason: notify.Unavailable, retryable: true},
}

// classify turns the error of a call into what the deliverer needs to know; nil stays nil.
func classify(err error, s *sent) *notify.Error {
	if err == nil {
		return nil
	}
	var limited *slackgo.RateLimitedError
	var status slackgo.StatusCodeError
	var refused slackgo.SlackErrorResponse
	switch {
	case errors.Is(err, errStray):
		return &notify.Error{Reason: notify.MessageGone, Err: err, Hint: codes["thread_not_found"].hint}
	case errors.As(err, &limited):
		return &notify.Error{Reason: notify.RateLimited, Retryable: true, After: limited.RetryAfter, Err: err}
	case errors.As(err, &status):
		return ofStatus(status, err)
	case errors.As(err, &refused):
		return ofCode(refused, err)
	default:
		return ofNetwork(err, s)
	}
}

func ofStatus(status slackgo.StatusCodeError, err error) *notify.Error {
	switch {
	case status.Code == http.StatusTooManyRequests:
		_, code, _ := strings.Cut(status.Status, " ")
		if c, ok := codes[code]; ok && !c.retryable {
			return &notify.Error{Reason: c.reason, Hint: c.hint, Err: err}
		}
		return &notify.Error{Reason: notify.RateLimited, Retryable: true, After: blindWait, Err: err}
	case status.Code == http.StatusServiceUnavailable:
		return &notify.Error{Reason: notify.Unavailable, Retryable: true, Err: err}
	case status.Code >= http.StatusInternalServerError:
		// The message may have been taken before the answer went wrong.
		return &notify.Error{Reason: notify.Unavailable, Retryable: true, Maybe: true, Err: err}
	case status.Code == http.StatusRequestEntityTooLarge:
		return &notify.Error{Reason: notify.Rejected, Err: err}
	case status.Code == http.StatusUnauthorized || status.Code == http.StatusProxyAuthRequired,
		status.Code >= http.StatusMultipleChoices && status.Code < http.StatusBadRequest:
		return &notify.Error{Reason: notify.Auth, Err: err, Hint: "something before Slack asks for a login: check the proxy"}
	default:
		return &notify.Error{Reason: notify.OtherReason, Err: err}
	}
}

func ofCode(refused slackgo.SlackErrorResponse, err error) *notify.Error {
	if n := len(refused.ResponseMetadata.Messages); n > 0 {
		// They hold the JSON pointer of the block that Slack did not like.
		err = fmt.Errorf("%w: %s", err, strings.Join(refused.ResponseMetadata.Messages[:min(n, 5)], "; "))
	}
	c, ok := codes[refused.Err]
	if !ok {
		return &notify.Error{Reason: notify.OtherReason, Err: err}
	}
	e := &notify.Error{Reason: c.reason, Retryable: c.retryable, Maybe: c.maybe, Hint: c.hint, Err: err}
	if c.reason == notify.RateLimited && c.retryable {
		e.After = blindWait
	}
	if refused.Err == "missing_scope" && refused.Needed != "" {
		e.Hint = fmt.Sprintf("grant the scope %s to the app and reinstall it", refused.Needed)
	}
	return e
}

// ofNetwork classes errors without an answer of Slack. Once the request has left, the message may be there.
func ofNetwork(err error, s *sent) *notify.Error {
	left := s != nil && s.headers.Load()
	e := &notify.Error{Reason: notify.Unavailable, Retryable: true, Maybe: left, Err: err}
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		e.Reason = notify.TimedOut
	}
	if errors.Is(err, context.Canceled) {
		e.Reason = notify.OtherReason
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Hint = "what answers is not Slack: check slack.api_url and the proxy"
	}
	return e
}
