// Package expression answers: how does a user pick values out of a document, as with kubectl?
//
// A format is one that the document has (package format), or NAME=EXPRESSION, such as jsonpath={.verdict.decision}:
// the expression is applied to the document in JSON. [Flag] rejects an expression before any work begins.
package expression

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	template "github.com/DataDog/datadog-agent/pkg/template/text" // text/template makes the linker keep the methods of every type
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/localfile"
)

// write writes what an expression selects of a document, which is a value of JSON.
type write func(w io.Writer, document any) error

// kinds are the formats with an expression, each with what compiles one.
func kinds() map[string]func(expression string) (write, error) {
	return map[string]func(string) (write, error){
		"jsonpath":         func(text string) (write, error) { return jsonPath(text, false) },
		"jsonpath-as-json": func(text string) (write, error) { return jsonPath(text, true) },
		"go-template":      goTemplate,
		"custom-columns":   customColumns,
	}
}

// Formats are the names of the formats that a document has, as "NAME=" for formats with an expression.
func Formats(document any) []string {
	names := format.Names(document)
	for _, name := range slices.Sorted(maps.Keys(kinds())) {
		names = append(names, name+"=")
	}
	return names
}

// Flag is the value of a flag of a command that takes a format. An expression is checked when it is set;
// NAME-file=FILE becomes NAME= with the content of the file.
func Flag(c *cobra.Command, output *string) pflag.Value { return value{c, output} }

type value struct {
	command *cobra.Command
	output  *string
}

func (v value) String() string { return *v.output }

func (value) Type() string { return "string" }

// maxFile bounds a file with an expression, in bytes.
const maxFile = 1 << 20

func (v value) Set(text string) error {
	name, expression, has := strings.Cut(text, "=")
	if kind, isFile := strings.CutSuffix(name, "-file"); has && isFile && kinds()[kind] != nil {
		content, err := localfile.Read(v.command.Context(), expression, maxFile)
		if err != nil {
			return err
		}
		if len(content) > maxFile {
			return fmt.Errorf("%s has more than %d bytes", expression, maxFile)
		}
		name, expression = kind, string(content)
		text = name + "=" + expression
	}
	if has {
		if _, err := compile(name, expression); err != nil {
			return err
		}
	}
	*v.output = text
	return nil
}

// compile returns what writes a document in a format with an expression; nil for another format.
func compile(name, expression string) (write, error) {
	kind := kinds()[name]
	switch {
	case kind == nil:
		return nil, nil //nolint:nilnil // there is none
	case strings.TrimSpace(expression) == "":
		return nil, fmt.Errorf("%s= has no expression", name)
	}
	return kind(expression)
}

// Check returns an error that lists the formats of the document when output is none of them.
func Check(output string, document any) error {
	name, _, has := strings.Cut(output, "=")
	if has && kinds()[name] != nil || format.Check(output, document) == nil {
		return nil
	}
	return fmt.Errorf("unknown output format %q: it must be one of %s", output, strings.Join(Formats(document), ", "))
}

// Write writes the document in a format; text and wide have the style. What an expression selects is written without
// characters that change a terminal.
func Write(w io.Writer, output string, document any, style format.Style) error {
	name, expression, _ := strings.Cut(output, "=")
	selected, err := compile(name, expression)
	if err != nil {
		return err
	}
	if selected == nil {
		return format.Write(w, output, document, style)
	}
	var text, made bytes.Buffer
	if err := format.Write(&text, "json", document, style); err != nil {
		return err
	}
	var values any
	if err := utiljson.Unmarshal(text.Bytes(), &values); err != nil { // whole numbers stay whole
		return err
	}
	if err := selected(&made, values); err != nil {
		return fmt.Errorf("could not apply %s: %w", output, err)
	}
	_, err = io.WriteString(w, words.Printable(made.String()))
	return err
}

// path compiles a JSONPath. A field that the document lacks is empty, as with kubectl.
func path(text string) (*jsonpath.JSONPath, error) {
	parsed := jsonpath.New("output").AllowMissingKeys(true)
	return parsed, parsed.Parse(text)
}

func jsonPath(text string, asJSON bool) (write, error) {
	parsed, err := path(text)
	parsed.EnableJSONOutput(asJSON)
	return parsed.Execute, err
}

func goTemplate(text string) (write, error) {
	parsed, err := template.New("output").Parse(text)
	return parsed.Execute, err
}

// relaxed is a JSONPath of one value, whose braces and first dot may be left out.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// customColumns compiles TITLE:PATH,..., or a file with a line of titles and one of paths.
func customColumns(text string) (write, error) {
	columns := strings.Split(text, ",")
	if titles, paths, isFile := strings.Cut(strings.TrimSpace(text), "\n"); isFile {
		columns = strings.Fields(titles)
		each := strings.Fields(paths)
		if len(columns) != len(each) {
			return nil, fmt.Errorf("%d titles, but %d paths", len(columns), len(each))
		}
		for i := range columns {
			columns[i] += ":" + each[i]
		}
	}
	var titles []string
	var paths []*jsonpath.JSONPath
	for _, column := range columns {
		title, of, _ := strings.Cut(column, ":")
		found := relaxed.FindStringSubmatch(of)
		if title == "" || found == nil {
			return nil, fmt.Errorf("the column %q is not TITLE:PATH, such as DECISION:.verdict.decision", column)
		}
		parsed, err := path("{." + found[1] + found[2] + "}")
		if err != nil {
			return nil, fmt.Errorf("the column %q: %w", column, err)
		}
		titles, paths = append(titles, title), append(paths, parsed)
	}
	return func(w io.Writer, document any) error { return writeColumns(w, titles, paths, document) }, nil
}

// texts are values as they are shown in a column.
func texts(values []reflect.Value) ([]string, error) {
	var found []string
	for _, value := range values {
		if !value.IsValid() || !value.CanInterface() || value.Interface() == nil {
			continue
		}
		text, isText := reflect.TypeAssert[string](value)
		if !isText {
			encoded, err := json.Marshal(value.Interface())
			if err != nil {
				return nil, err
			}
			text = string(encoded)
		}
		found = append(found, words.Line(text, len(text)))
	}
	return found, nil
}

func writeColumns(w io.Writer, titles []string, paths []*jsonpath.JSONPath, document any) error {
	var row []string
	for _, each := range paths {
		results, err := each.FindResults(document)
		if err != nil {
			return err
		}
		found, err := texts(slices.Concat(results...))
		if err != nil {
			return err
		}
		row = append(row, cmp.Or(strings.Join(found, ","), "<none>"))
	}
	const least, tab, padding = 6, 4, 3
	table := tabwriter.NewWriter(w, least, tab, padding, ' ', 0)
	fmt.Fprintf(table, "%s\n%s\n", strings.Join(titles, "\t"), strings.Join(row, "\t"))
	return table.Flush()
}
