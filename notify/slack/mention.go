package slack

import "regexp"

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
)

// ValidMention says whether a configured mention can be called: a user id (U…, W…), a user group id (S…), here or
// channel.
func ValidMention(s string) bool { return mention(s) != "" }

// mention is the markup that calls somebody, or empty.
func mention(s string) string {
	switch {
	case s == "here" || s == "channel":
		return "<!" + s + ">"
	case userID.MatchString(s):
		return "<@" + s + ">"
	case groupID.MatchString(s):
		return "<!subteam^" + s + ">"
	default:
		return ""
	}
}
