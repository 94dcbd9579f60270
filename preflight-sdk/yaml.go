package preflight

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// mapping is a YAML mapping that keeps its order.
type mapping []field

// field has a value that is a string, a bool, an int, a list of strings, a
// mapping or a list of mappings.
type field struct {
	name  string
	value any
}

// write writes the mapping in block style, and lists of strings in flow style,
// with every string quoted that a parser might take for something else.
func (m mapping) write(w *strings.Builder, indent string) {
	for _, f := range m {
		fmt.Fprintf(w, "%s%s:", indent, scalar(f.name))
		switch v := f.value.(type) {
		case string:
			fmt.Fprintf(w, " %s\n", scalar(v))
		case []string:
			fmt.Fprintf(w, " [%s]\n", flow(v))
		case mapping:
			w.WriteString("\n")
			v.write(w, indent+"  ")
		case []mapping:
			w.WriteString("\n")
			for _, item := range v {
				item.writeItem(w, indent)
			}
		default:
			fmt.Fprintf(w, " %v\n", v)
		}
	}
}

// writeItem writes the mapping as an item of a list: a dash in the place of
// the first two spaces of its indentation.
func (m mapping) writeItem(w *strings.Builder, indent string) {
	var text strings.Builder
	m.write(&text, indent+"  ")
	fmt.Fprintf(w, "%s- %s", indent, strings.TrimPrefix(text.String(), indent+"  "))
}

func flow(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = quote(value)
	}
	return strings.Join(quoted, ", ")
}

// scalar leaves those strings plain that are strings to every parser: words,
// paths and pull specs, but not what YAML 1.1 takes for a bool or null.
func scalar(text string) string {
	plain := regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9._/@-]*(:[A-Za-z0-9._/@-]+)*$`)
	taken := regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
	if plain.MatchString(text) && !taken.MatchString(text) {
		return text
	}
	return quote(text)
}

// quote uses the escapes of Go, all of which are escapes of YAML too.
func quote(text string) string { return strconv.QuoteToASCII(text) }
