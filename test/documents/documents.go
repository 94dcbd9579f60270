// Package documents answers: which blocks and which commands do the Markdown files of
// this repository contain?
package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Block is a fenced block of a Markdown file.
type Block struct {
	// Section is the heading above the block, without number signs.
	Section string
	// Language is the first word behind the fence; empty without one.
	Language string
	// Text is the content, each line with its newline.
	Text string
}

// Files are the paths, from root, of the Markdown files that git tracks.
func Files(root string) ([]string, error) {
	command := exec.Command("git", "ls-files", "*.md") //nolint:noctx // a local command that ends
	command.Dir = root
	out, err := command.Output()
	return strings.Fields(string(out)), err
}

// Read is the content of a file of the repository.
func Read(root, path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of the repository
	return string(text), err
}

// Blocks are the fenced blocks of a Markdown file, in order.
func Blocks(text string) []Block {
	var blocks []Block
	section := ""
	for _, match := range regexp.MustCompile("(?ms)^#+ (.*?)$|^```(\\w*)[^\n]*\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if match[1] != "" {
			section = match[1]
			continue
		}
		blocks = append(blocks, Block{Section: section, Language: match[2], Text: match[3]})
	}
	return blocks
}

// Spans are the spans of code in the prose of a Markdown file, each on one line.
func Spans(text string) []string {
	prose := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
	var spans []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(prose, -1) {
		spans = append(spans, strings.Join(strings.Fields(match[1]), " "))
	}
	return spans
}

// start is the beginning of a call of this program in a shell script. The name of its file is
// a call only where a command begins.
const start = "(?:^|[\\s;&|($`\"'])(?:oc preflight|kubectl preflight)(?: |$)|(?:^\\s*(?:[-\\w]+: )?|[;&|(`\"'] *)oc-preflight(?: |$)"

// Calls are the arguments of the calls of this program in a shell script, or in a file
// that contains one. Continued lines are joined; comments contain no calls.
func Calls(script string) [][]string {
	var calls [][]string
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		for line = strings.TrimSpace(line); !strings.HasPrefix(line, "#"); {
			found := regexp.MustCompile(start).FindStringIndex(line)
			if found == nil {
				break
			}
			var call []string
			call, line = words(line[found[1]:])
			calls = append(calls, call)
		}
	}
	return calls
}

// words splits a simple command into its words as a shell does, without expansion. rest is
// what follows the command: an operator, a redirection or a comment.
func words(text string) (found []string, rest string) {
	word, quote, inWord := "", rune(0), false
	end := func() {
		if inWord {
			found = append(found, word)
		}
		word, inWord = "", false
	}
	for at, char := range text {
		switch {
		case quote != 0 && char == quote:
			quote = 0
		case quote != 0:
			word += string(char)
		case char == '\'' || char == '"':
			quote, inWord = char, true
		case strings.ContainsRune("|;&<>)`", char), char == '#' && !inWord:
			end()
			return found, text[at:]
		case char == ' ' || char == '\t':
			end()
		default:
			word, inWord = word+string(char), true
		}
	}
	end()
	return found, ""
}
