// Package language answers: do the texts of this repository keep to standard
// technical English?
package language_test

import (
	"bufio"
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rejected are words and turns that have crept in before, each with what to write.
var rejected = map[string]string{
	`nobody|no one`: "name the object: no process, no user, no check",
	`somebody|someone|anybody|anyone|everybody|everyone|whoever`: "name the role: another process, each user",
	`tells?|told`:                           "report, return, state",
	`heard`:                                 "received, reported",
	`all the time`:                          "repeatedly, at each request",
	`put right`:                             "fix",
	`stands? in the way`:                    "blocks",
	`under way|on its way`:                  "in progress",
	`could not tell|cannot tell|can't tell`: "inconclusive, unknown",
	`what there is|what there was`:          "name it",
	`looked? at`:                            "check, read, inspect",
	`may it be`:                             "is it permitted, does it conform",
	`goes on|gone on|go on with`:            "continues",
}

// stiff are turns that read as if they were translated, each with what to write. They are rejected in what people read:
// pages, and the comments and texts of the product. Identifiers and tests may have them.
var stiff = map[string]string{
	`(is|are) what`:                        "name it: the cause, the state, the release",
	`(that|those|the ones?) of`:            "repeat the noun, or use a possessive",
	`reported (when|for|where|if|instead)`: "begin with the condition itself",
	`(?-i:judg(e|es|ed|ing))`:              "evaluate; the name of an identifier may begin with Judge",
	`(is|are|was|were) to be`:              "must be, will be, can be",
	`(is|are|was|were) of (an?|the)`:       "belongs to",
	`to be known`:                          "notes",
	`all which|that which`:                 "everything that",
	`by then`:                              "before this time",
	`authorities of`:                       "CA bundles",
	`drains? (do|does) not end`:            "hangs",
	`(was|were|is|are) stated`:             "recorded, reported",
	`has no say|have no say`:               "does not affect",
	`of those`:                             "of the objects: repeat the noun",
}

// TestTexts fails for each of the stiff turns.
func TestTexts(t *testing.T) {
	var all []string
	for expression := range stiff {
		all = append(all, expression)
	}
	words := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`)
	for _, path := range files(t) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../../test/") || strings.HasSuffix(path, "CHANGELOG.md") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range read(path, text) {
			if found := words.FindString(line); found != "" {
				t.Errorf("%s:%d: write something else for %q: %s", path, number, found, advice(found, stiff))
			}
		}
	}
}

// read are the lines of a page, or of the comments and strings of a program, by number.
func read(path string, text []byte) map[int]string {
	lines := map[int]string{}
	if !strings.HasSuffix(path, ".go") {
		for i, line := range strings.Split(string(text), "\n") {
			lines[i+1] = line
		}
		return lines
	}
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	var tokens scanner.Scanner
	tokens.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, literal := tokens.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind != token.COMMENT && kind != token.STRING || !strings.Contains(literal, " ") { // a tag, or a key
			continue
		}
		for i, line := range strings.Split(literal, "\n") {
			lines[file.Line(at)+i] += " " + line
		}
	}
}

// TestWords fails for each of the rejected words in comments, messages, identifiers
// and documents.
func TestWords(t *testing.T) {
	var all []string
	for expression := range rejected {
		all = append(all, expression)
	}
	// An identifier is words too: nobodyHolds, toldTwice.
	words := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") +
		`)\b|\b(nobody|somebody|whoever|told|heard)[A-Z]|[a-z](Nobody|Somebody|Whoever|Told|Heard)\b`)
	for _, path := range files(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for number := 1; lines.Scan(); number++ {
			line := strings.NewReplacer("http.NoBody", "", "e.ObjectOld", "").Replace(lines.Text()) // names of libraries
			if found := words.FindString(line); found != "" {
				t.Errorf("%s:%d: write something else for %q: %s", path, number, found, advice(found, rejected))
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

var (
	// counted is a number before one of the product's nouns in the plural, which is wrong where
	// the number is 1.
	counted = regexp.MustCompile(
		`%d (checks|CustomResourceDefinitions|findings|hours|images|kubelets|machines|nodes|objects|pools|roles|rows|runs|targets|updates|versions|webhooks)\b`)
	// elsewhere are the files without the texts of the product.
	elsewhere = regexp.MustCompile(`^\.\./\.\./(test|preflight-sdk)/`)
	// limit is a number that the other one exceeds.
	limit = regexp.MustCompile(`(at most|more than) %d`)
)

// TestPlurals fails for each number with a noun that is in the plural also for 1. The SDK, a
// module of its own, counts in a log only.
func TestPlurals(t *testing.T) {
	for _, path := range files(t) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || elsewhere.MatchString(path) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range strings.Split(string(text), "\n") {
			if found := counted.FindString(line); found != "" && !limit.MatchString(line) {
				t.Errorf("%s:%d: write words.Count for the number and its noun: %s", path, number+1, found)
			}
		}
	}
}

func advice(found string, from map[string]string) string {
	for expression, instead := range from {
		if regexp.MustCompile(`(?i)^(` + expression + `)$`).MatchString(found) {
			return instead
		}
	}
	return "see CONTRIBUTING.md"
}

// files are the Go files and documents of the repository, but for this one.
func files(t *testing.T) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "*.go", "*.md", "Makefile", "*.sh", "*.yml")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var paths []string
	for path := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(path, "test/language/") {
			paths = append(paths, filepath.Join("../..", path))
		}
	}
	return paths
}
