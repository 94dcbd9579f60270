package alteration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// literals writes values as literals of the Common Expression Language. Values that occur more than once are variables, so
// that a policy does not grow with what all checks have.
type literals struct {
	count     map[string]int
	names     map[string]string
	variables []admissionregistrationv1.Variable
}

// minShared is the length from which on a literal that occurs again is a variable.
const minShared = 60

// of is the literal of a value as in a manifest.
func (l *literals) of(value any) string {
	switch value := value.(type) {
	case string:
		return strconv.Quote(value)
	case map[string]any:
		return l.shared(value, func(of func(any) string) string {
			fields := make([]string, 0, len(value))
			for _, key := range slices.Sorted(maps.Keys(value)) {
				fields = append(fields, strconv.Quote(key)+": dyn("+of(value[key])+")")
			}
			return "{" + strings.Join(fields, ", ") + "}"
		})
	case []any:
		return l.shared(value, func(of func(any) string) string {
			elements := make([]string, 0, len(value))
			for _, element := range value {
				elements = append(elements, "dyn("+of(element)+")")
			}
			return "[" + strings.Join(elements, ", ") + "]"
		})
	}
	return fmt.Sprint(value) // a number or a boolean
}

// shared is a composite literal, or the variable that has it. What a first pass has counted is known in the second.
func (l *literals) shared(value any, write func(of func(any) string) string) string {
	if l.names == nil {
		text := write(l.of)
		l.count[text]++
		return text
	}
	whole := (&literals{count: map[string]int{}}).of(value)
	if l.count[whole] < 2 || len(whole) < minShared {
		return write(l.of)
	}
	if l.names[whole] == "" {
		text := write(l.of)
		l.names[whole] = fmt.Sprintf("shared%d", len(l.variables))
		l.variables = append(l.variables, admissionregistrationv1.Variable{Name: l.names[whole], Expression: text})
	}
	return "variables." + l.names[whole]
}

// ofAll are the literals of several values, with the variables that they use.
func ofAll(values []map[string]any) ([]string, []admissionregistrationv1.Variable) {
	l := &literals{count: map[string]int{}}
	for _, value := range values {
		l.of(value)
	}
	l.names = map[string]string{}
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, l.of(value))
	}
	return texts, l.variables
}
