package fakeslack

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of Block Kit (https://docs.slack.dev/reference/block-kit) and of chat.postMessage.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
	maxTotalText     = 12_000 // Not documented; Slack refused 11,341 to 13,200 in the field (slackapi/bolt-js#2509).
	maxTableText     = 10_000
	maxSectionText   = 3000
	maxFields        = 10
	maxFieldText     = 2000
	maxHeaderText    = 150
	maxContextItems  = 10
	maxActionItems   = 25
	maxIDLength      = 255
	maxMarkdownText  = 12_000
)

// Validate checks the JSON of a message's blocks as Slack does. It returns the error code ("" when they are fine) and
// the messages that Slack puts into response_metadata, each with its JSON pointer.
func Validate(blocks json.RawMessage) (code string, messages []string) {
	return validate(blocks, false)
}

func validate(blocks json.RawMessage, view bool) (code string, messages []string) {
	var list []any
	if err := json.Unmarshal(blocks, &list); err != nil {
		return "invalid_blocks_format", []string{"[ERROR] must be an array of blocks: " + err.Error()}
	}
	v := &validator{view: view, ids: map[string]bool{}}
	limit := maxMessageBlocks
	if view {
		limit = maxViewBlocks
	}
	if len(list) > limit {
		v.fail("/blocks", "no more than %d items allowed", limit)
	}
	for i, b := range list {
		v.block(fmt.Sprintf("/blocks/%d", i), b)
	}
	switch {
	case v.tables > 1:
		v.fail("/blocks", "only_one_table_allowed")
	case v.charts > 2:
		v.fail("/blocks", "no more than 2 data_visualization blocks allowed")
	case v.tableText > maxTableText:
		v.fail("/blocks", "table cells exceed %d characters", maxTableText)
	case v.markdown > maxMarkdownText:
		v.fail("/blocks", "markdown blocks exceed %d characters", maxMarkdownText)
	}
	if len(v.messages) > 0 {
		return "invalid_blocks", v.messages
	}
	if !view && v.total > maxTotalText {
		return "msg_blocks_too_long", []string{fmt.Sprintf("[ERROR] blocks hold %d characters of text", v.total)}
	}
	return "", nil
}

type validator struct {
	view                       bool
	messages                   []string
	ids                        map[string]bool
	total, tableText, markdown int
	tables, charts             int
}

type object = map[string]any

func (v *validator) fail(pointer, format string, args ...any) {
	v.messages = append(v.messages, fmt.Sprintf("[ERROR] "+format+" [json-pointer:%s]", append(args, pointer)...))
}

func (v *validator) block(at string, b any) {
	o, ok := b.(object)
	if !ok {
		v.fail(at, "must be an object")
		return
	}
	v.id(at+"/block_id", o["block_id"], true)
	switch o["type"] {
	case "section":
		v.section(at, o)
	case "header":
		v.only(at, o, "type", "block_id", "text", "level")
		v.text(at+"/text", o["text"], "plain_text", maxHeaderText)
	case "context":
		v.context(at, o)
	case "actions":
		v.actions(at, o)
	case "divider":
		v.only(at, o, "type", "block_id")
	case "image":
		v.image(at, o)
	case "rich_text":
		v.richText(at, o)
	case "table":
		v.table(at, o)
	case "data_visualization":
		v.chart(at, o)
	case "markdown":
		s := v.str(at+"/text", o["text"], 1, maxMarkdownText)
		v.markdown += utf8.RuneCountInString(s)
		v.total += utf8.RuneCountInString(s)
	case "input":
		v.input(at, o)
	default:
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
}

// only refuses fields that Slack does not know for the object.
func (v *validator) only(at string, o object, fields ...string) {
	for k := range o {
		known := false
		for _, f := range fields {
			known = known || f == k
		}
		if !known {
			v.fail(at, "additional property: %s", k)
		}
	}
}

func (v *validator) id(at string, id any, unique bool) {
	if id == nil {
		return
	}
	s := v.str(at, id, 1, maxIDLength)
	if unique && s != "" {
		if v.ids[s] {
			v.fail(at, "must be unique: %s", s)
		}
		v.ids[s] = true
	}
}

// str checks a string's length in characters and returns it.
func (v *validator) str(at string, x any, least, most int) string {
	s, ok := x.(string)
	if !ok {
		v.fail(at, "must provide a string")
		return ""
	}
	n := utf8.RuneCountInString(s)
	if n < least {
		v.fail(at, "must be more than %d characters", least-1)
	}
	if n > most {
		v.fail(at, "must be less than %d characters", most+1)
	}
	return s
}

// text checks a text object; kind "" allows both.
func (v *validator) text(at string, x any, kind string, most int) {
	o, ok := x.(object)
	if !ok {
		v.fail(at, "missing required field")
		return
	}
	v.only(at, o, "type", "text", "emoji", "verbatim")
	t, _ := o["type"].(string)
	if t != "plain_text" && t != "mrkdwn" || kind != "" && t != kind {
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
	if t == "mrkdwn" && o["emoji"] != nil {
		v.fail(at+"/emoji", "not allowed for mrkdwn")
	}
	v.total += utf8.RuneCountInString(v.str(at+"/text", o["text"], 1, most))
}

func (v *validator) list(at string, x any, least, most int) []any {
	l, ok := x.([]any)
	if !ok {
		v.fail(at, "missing required field")
		return nil
	}
	if len(l) < least {
		v.fail(at, "must have at least %d items", least)
	}
	if len(l) > most {
		v.fail(at, "no more than %d items allowed", most)
	}
	return l
}

func (v *validator) section(at string, o object) {
	v.only(at, o, "type", "block_id", "text", "fields", "accessory", "expand")
	if o["text"] == nil && o["fields"] == nil {
		v.fail(at, "missing required field: text or fields")
	}
	if o["text"] != nil {
		v.text(at+"/text", o["text"], "", maxSectionText)
	}
	if o["fields"] != nil {
		for i, f := range v.list(at+"/fields", o["fields"], 1, maxFields) {
			v.text(fmt.Sprintf("%s/fields/%d", at, i), f, "", maxFieldText)
		}
	}
	if o["accessory"] != nil {
		v.element(at+"/accessory", o["accessory"])
	}
}

func (v *validator) context(at string, o object) {
	v.only(at, o, "type", "block_id", "elements")
	for i, e := range v.list(at+"/elements", o["elements"], 1, maxContextItems) {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		if eo, ok := e.(object); ok && eo["type"] == "image" {
			v.image(p, eo)
			continue
		}
		v.text(p, e, "", maxSectionText)
	}
}

func (v *validator) image(at string, o object) {
	v.str(at+"/alt_text", o["alt_text"], 1, 2000)
	url, file := o["image_url"], o["slack_file"]
	switch {
	case (url == nil) == (file == nil):
		v.fail(at, "must have either image_url or slack_file")
	case url != nil:
		v.url(at+"/image_url", url)
	}
	if o["title"] != nil {
		v.text(at+"/title", o["title"], "plain_text", 2000)
	}
}

func (v *validator) url(at string, x any) {
	s := v.str(at, x, 1, 3000)
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		v.fail(at, "must be a valid URL")
	}
}

func (v *validator) actions(at string, o object) {
	v.only(at, o, "type", "block_id", "elements")
	ids := map[any]bool{}
	primary := 0
	for i, e := range v.list(at+"/elements", o["elements"], 1, maxActionItems) {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		v.element(p, e)
		eo, _ := e.(object)
		if id := eo["action_id"]; id != nil {
			if ids[id] {
				v.fail(p+"/action_id", "must be unique within the block: %v", id)
			}
			ids[id] = true
		}
		if eo["style"] == "primary" {
			primary++
		}
	}
	if primary > 1 {
		v.fail(at+"/elements", "only one primary button allowed")
	}
}

func (v *validator) element(at string, x any) {
	o, ok := x.(object)
	if !ok {
		v.fail(at, "must be an object")
		return
	}
	if o["type"] != "image" {
		v.id(at+"/action_id", o["action_id"], false)
	}
	switch o["type"] {
	case "button":
		v.only(at, o, "type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label")
		v.text(at+"/text", o["text"], "plain_text", 75)
		if o["value"] != nil {
			v.str(at+"/value", o["value"], 0, 2000)
		}
		if o["url"] != nil {
			v.url(at+"/url", o["url"])
		}
		if s := o["style"]; s != nil && s != "primary" && s != "danger" {
			v.fail(at+"/style", "must be primary or danger")
		}
		v.confirm(at+"/confirm", o["confirm"])
	case "static_select":
		v.only(at, o, "type", "placeholder", "action_id", "options", "option_groups", "initial_option", "confirm", "focus_on_load")
		if o["placeholder"] != nil {
			v.text(at+"/placeholder", o["placeholder"], "plain_text", 150)
		}
		v.options(at+"/options", o["options"], 100)
		v.confirm(at+"/confirm", o["confirm"])
	case "overflow":
		v.options(at+"/options", o["options"], 5)
	case "radio_buttons", "checkboxes":
		v.options(at+"/options", o["options"], 10)
	case "image":
		v.image(at, o)
	case "plain_text_input":
		if o["placeholder"] != nil {
			v.text(at+"/placeholder", o["placeholder"], "plain_text", 150)
		}
	default:
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
}

func (v *validator) options(at string, x any, most int) {
	values := map[string]bool{}
	for i, e := range v.list(at, x, 1, most) {
		p := fmt.Sprintf("%s/%d", at, i)
		o, _ := e.(object)
		v.only(p, o, "text", "value", "description", "url")
		v.text(p+"/text", o["text"], "", 75)
		value := v.str(p+"/value", o["value"], 1, 150)
		if values[value] {
			v.fail(p+"/value", "must be unique: %s", value)
		}
		values[value] = true
		if o["description"] != nil {
			v.text(p+"/description", o["description"], "plain_text", 75)
		}
	}
}

func (v *validator) confirm(at string, x any) {
	if x == nil {
		return
	}
	o, ok := x.(object)
	if !ok {
		v.fail(at, "must be an object")
		return
	}
	v.text(at+"/title", o["title"], "plain_text", 100)
	v.text(at+"/text", o["text"], "", 300)
	v.text(at+"/confirm", o["confirm"], "plain_text", 30)
	v.text(at+"/deny", o["deny"], "plain_text", 30)
}

func (v *validator) input(at string, o object) {
	if !v.view {
		v.fail(at+"/type", "unsupported type: input")
		return
	}
	v.text(at+"/label", o["label"], "plain_text", 2000)
	v.element(at+"/element", o["element"])
}

func (v *validator) richText(at string, o object) {
	v.only(at, o, "type", "block_id", "elements")
	for i, e := range v.list(at+"/elements", o["elements"], 1, math.MaxInt) {
		v.richElement(fmt.Sprintf("%s/elements/%d", at, i), e)
	}
}

func (v *validator) richElement(at string, x any) {
	o, _ := x.(object)
	switch o["type"] {
	case "rich_text_section", "rich_text_quote", "rich_text_preformatted":
		for i, e := range v.list(at+"/elements", o["elements"], 1, math.MaxInt) {
			v.inline(fmt.Sprintf("%s/elements/%d", at, i), e)
		}
	case "rich_text_list":
		if s := o["style"]; s != "bullet" && s != "ordered" {
			v.fail(at+"/style", "must be bullet or ordered")
		}
		for i, e := range v.list(at+"/elements", o["elements"], 1, math.MaxInt) {
			p := fmt.Sprintf("%s/elements/%d", at, i)
			if eo, _ := e.(object); eo["type"] != "rich_text_section" {
				v.fail(p+"/type", "unsupported type: %v", eo["type"])
				continue
			}
			v.richElement(p, e)
		}
	default:
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
}

func (v *validator) inline(at string, x any) {
	o, _ := x.(object)
	if style, ok := o["style"].(object); ok {
		v.only(at+"/style", style, "bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink")
		if len(style) == 0 {
			v.fail(at+"/style", "must not be empty")
		}
	}
	switch o["type"] {
	case "text":
		v.total += utf8.RuneCountInString(v.str(at+"/text", o["text"], 1, maxSectionText))
	case "link":
		v.url(at+"/url", o["url"])
		if o["text"] != nil {
			v.total += utf8.RuneCountInString(v.str(at+"/text", o["text"], 1, maxSectionText))
		}
	case "emoji":
		v.str(at+"/name", o["name"], 1, 100)
	case "user":
		if !idPattern.MatchString(v.str(at+"/user_id", o["user_id"], 1, 30)) {
			v.fail(at+"/user_id", "invalid user id")
		}
	case "usergroup":
		v.str(at+"/usergroup_id", o["usergroup_id"], 1, 30)
	case "channel":
		v.str(at+"/channel_id", o["channel_id"], 1, 30)
	case "broadcast":
		if r := o["range"]; r != "here" && r != "channel" && r != "everyone" {
			v.fail(at+"/range", "must be here, channel or everyone")
		}
	case "date":
		v.str(at+"/format", o["format"], 1, 200)
	default:
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
}

var idPattern = regexp.MustCompile(`^[UWSCB][A-Z0-9]{2,}$`)

func (v *validator) table(at string, o object) {
	v.only(at, o, "type", "block_id", "rows", "column_settings")
	v.tables++
	width := -1
	for i, r := range v.list(at+"/rows", o["rows"], 1, 100) {
		p := fmt.Sprintf("%s/rows/%d", at, i)
		row := v.list(p, r, 1, 20)
		if width >= 0 && len(row) != width {
			v.fail(p, "rows must have the same number of cells")
		}
		width = len(row)
		for j, c := range row {
			v.cell(fmt.Sprintf("%s/%d", p, j), c)
		}
	}
	if o["column_settings"] != nil {
		v.list(at+"/column_settings", o["column_settings"], 0, 20)
	}
}

func (v *validator) cell(at string, x any) {
	o, _ := x.(object)
	before := v.total
	switch o["type"] {
	case "raw_text":
		v.total += utf8.RuneCountInString(v.str(at+"/text", o["text"], 1, maxTableText))
	case "rich_text":
		v.richText(at, o)
	default:
		v.fail(at+"/type", "unsupported type: %v", o["type"])
	}
	v.tableText += v.total - before
}

func (v *validator) chart(at string, o object) {
	v.charts++
	v.total += utf8.RuneCountInString(v.str(at+"/title", o["title"], 1, 50))
	chart, ok := o["chart"].(object)
	if !ok {
		v.fail(at+"/chart", "missing required field")
		return
	}
	kind := chart["type"]
	if kind != "line" && kind != "bar" && kind != "area" {
		v.fail(at+"/chart/type", "unsupported type: %v", kind)
		return
	}
	axis, _ := chart["axis_config"].(object)
	categories := map[string]bool{}
	for i, c := range v.list(at+"/chart/axis_config/categories", axis["categories"], 1, 20) {
		s := v.str(fmt.Sprintf("%s/chart/axis_config/categories/%d", at, i), c, 1, 20)
		if categories[s] {
			v.fail(at+"/chart/axis_config/categories", "must be unique: %s", s)
		}
		categories[s] = true
	}
	names := map[string]bool{}
	for i, x := range v.list(at+"/chart/series", chart["series"], 1, 6) {
		p := fmt.Sprintf("%s/chart/series/%d", at, i)
		series, _ := x.(object)
		name := v.str(p+"/name", series["name"], 1, 20)
		if names[name] {
			v.fail(p+"/name", "must be unique: %s", name)
		}
		names[name] = true
		data := v.list(p+"/data", series["data"], 1, 20)
		if len(data) != len(categories) {
			v.fail(p+"/data", "must have one point for every category")
		}
		for j, d := range data {
			point, _ := d.(object)
			if label, _ := point["label"].(string); !categories[label] {
				v.fail(fmt.Sprintf("%s/data/%d/label", p, j), "must match a category")
			}
			if _, ok := point["value"].(float64); !ok {
				v.fail(fmt.Sprintf("%s/data/%d/value", p, j), "must be a number")
			}
		}
	}
}
