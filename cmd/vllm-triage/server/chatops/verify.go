package chatops

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"
)

// replayWindow is how long a signature is remembered: longer than one is accepted.
const replayWindow = 11 * time.Minute

// refusal is a request that is not Slack's, or not for us.
type refusal struct {
	reason Rejection
	status int
	err    error // For the log.
}

// verify checks that a request was signed with the signing secret within five minutes of this server's clock.
func (s *Service) verify(h http.Header, body []byte) *refusal {
	secret, err := read(s.c.SigningSecret)
	if err != nil {
		return &refusal{RejectedNoSecret, http.StatusServiceUnavailable, fmt.Errorf("read signing secret: %w", err)}
	}
	v, err := slackgo.NewSecretsVerifier(h, secret)
	if err == nil {
		if _, err = v.Write(body); err == nil {
			err = v.Ensure()
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, slackgo.ErrMissingHeaders):
		return &refusal{RejectedHeaders, http.StatusUnauthorized, err}
	case errors.Is(err, slackgo.ErrExpiredTimestamp) && signedBy(secret, h, body):
		return &refusal{RejectedClock, http.StatusUnauthorized, skew(h, time.Now())}
	default:
		return &refusal{RejectedSignature, http.StatusUnauthorized, err}
	}
	if !s.requests.first(h.Get("X-Slack-Signature"), s.now(), replayWindow) {
		// Answered with 200: whoever sent it is told nothing, and nothing is done twice.
		return &refusal{RejectedReplay, http.StatusOK, errors.New("the same signed request came before")}
	}
	return nil
}

// signedBy says whether the signature is right, whatever its time: then a request that is refused as too old says that one
// of the clocks is wrong, or that it was recorded and sent again.
func signedBy(secret string, h http.Header, body []byte) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + h.Get("X-Slack-Request-Timestamp") + ":")) // A hash never fails.
	_, _ = mac.Write(body)
	return hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(h.Get("X-Slack-Signature")))
}

func skew(h http.Header, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get("X-Slack-Request-Timestamp"), 10, 64)
	if err != nil {
		return fmt.Errorf("read timestamp: %w", err)
	}
	return fmt.Errorf("this server's clock differs by %d s from Slack's (the signature is right): check its time "+
		"synchronisation; if the clock is right, an old request was sent again", now.Unix()-seconds)
}
