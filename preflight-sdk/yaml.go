package preflight

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// mapping is a YAML mapping with ordered fields.
type mapping []field

// field is a field of a mapping. Its value is a string, a bool, an int, a list of
// strings, a mapping or a list of mappings.
type field struct {
	name  string
	value any
}

// write writes the mapping in block style and lists of strings in flow style. A
// string that a parser might read as another type is quoted.
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

// writeItem writes the mapping as an item of a list: a dash replaces the first two
// spaces of the indentation.
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

var (
	plainScalar    = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9._/@-]*(:[A-Za-z0-9._/@-]+)*$`)
	reservedScalar = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// scalar quotes a string unless every parser reads it as a string: words, paths
// and pull specs, except for the booleans and null of YAML 1.1.
func scalar(text string) string {
	if plainScalar.MatchString(text) && !reservedScalar.MatchString(text) {
		return text
	}
	return quote(text)
}

// quote uses the escapes of Go, which are all valid in YAML.
func quote(text string) string { return strconv.QuoteToASCII(text) }
