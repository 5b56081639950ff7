package server

import "strings"

// words are the few sentences that the service says outside of a report, by language. English has them all.
var words = map[string]map[string]string{
	"en": {
		"heartbeat.silent": "No heartbeat for {duration}: {alert} has stopped coming. Alerts may not arrive; check Prometheus' " +
			"rules, Alertmanager's route to this service and its webhook token.",
		"heartbeat.back": "The heartbeat {alert} is back after {duration}. Alerts that fired meanwhile arrive with Alertmanager's next repeat.",
		"recheck.asked":  "Re-checked: {verdict}",
		"recheck.failed": "The re-check failed: {why}",
		"recheck.value":  "{signal}: {during} during the incident, {now} now",
		"recheck.load":   "The load is {share} of the incident's.",
		"late.over":      "Meanwhile the alert has stopped firing.",
	},
	"ko": {
		"heartbeat.silent": "{duration} 동안 하트비트가 없습니다: {alert} 알림이 더 이상 오지 않습니다. 알림이 도착하지 않을 수 있으니 " +
			"Prometheus 규칙, Alertmanager 라우트, 웹훅 토큰을 확인하세요.",
		"heartbeat.back": "{duration} 만에 하트비트 {alert}가 돌아왔습니다. 그동안 발생한 알림은 Alertmanager의 다음 반복 때 도착합니다.",
		"recheck.asked":  "다시 확인: {verdict}",
		"recheck.failed": "다시 확인하지 못했습니다: {why}",
		"recheck.value":  "{signal}: 장애 중 {during}, 지금 {now}",
		"recheck.load":   "부하는 장애 때의 {share}입니다.",
		"late.over":      "그사이 알림은 더 이상 발생하지 않습니다.",
	},
}

// say fills a sentence. Pairs are name, value, name, value.
func say(language, key string, pairs ...string) string {
	text, ok := words[language][key]
	if !ok {
		text = words["en"][key]
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, "{"+pairs[i]+"}", pairs[i+1])
	}
	return text
}
