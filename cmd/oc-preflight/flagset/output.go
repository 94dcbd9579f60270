package flagset

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/expression"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/document/format"
)

// OutputFlag is -o for a document.
func OutputFlag(c *cobra.Command, output *string, document any) {
	c.Flags().VarP(expression.Flag(c, output), "output", "o",
		"One of the formats "+strings.Join(expression.Formats(document), ", ")+"; as with kubectl, an expression follows =, and a file -file=.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "output")
	completion.Formats(c, "output", "", expression.Formats(document))
}

// Output are -o and --report: the same document in several formats.
type Output struct {
	// Format is the format of standard output, such as "text" or "jsonpath={.verdict}".
	Format string
	// Files are FORMAT=FILE.
	Files []string
	// Color is "auto", "always" or "never".
	Color string
	// Details is true to list what passed as well, and every text in full.
	Details bool
}

// Add adds --output and --report, which offer the formats of the document.
func (f *Output) Add(c *cobra.Command, document any) {
	f.Format, f.Color, f.Details = "text", terminal.ColorAuto, true
	OutputFlag(c, &f.Format, document)
	c.Flags().StringArrayVar(&f.Files, "report", nil,
		"FORMAT=FILE: also write the document to a file, in any format of --output. May be repeated.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "report")
	completion.Formats(c, "report", "=", format.Names(document))
}

// AddText also adds the flags that change a text.
func (f *Output) AddText(c *cobra.Command, document any) {
	f.Add(c, document)
	f.addText(c)
}

// maxReportFiles bounds the number of files of one command.
const maxReportFiles = 20

// Check rejects formats that the document does not have, and files without a name.
func (f *Output) Check(document any) error {
	if err := expression.Check(f.Format, document); err != nil {
		return err
	}
	if err := f.checkColor(); err != nil {
		return err
	}
	if len(f.Files) > maxReportFiles {
		return fmt.Errorf("--report: %d files, but at most %d are written", len(f.Files), maxReportFiles)
	}
	for _, text := range f.Files {
		name, path, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return fmt.Errorf("--report: %q is not FORMAT=FILE, such as json=report.json", text)
		}
		if err := format.Check(name, document); err != nil {
			return fmt.Errorf("--report %s: %w", text, err)
		}
	}
	return nil
}

// Open checks the flags and creates the files, so that one which cannot be written is
// bad input before anything else is done. The output must be closed.
func (f *Output) Open(stdout io.Writer, document any) (*Destination, error) {
	if err := f.Check(document); err != nil {
		return nil, exitcode.BadUsage(err)
	}
	opened := &Destination{Stdout: stdout, format: f.Format, Style: f.style(stdout)}
	for _, text := range f.Files {
		name, path, _ := strings.Cut(text, "=")
		if err := opened.create(name, path); err != nil {
			opened.Close()
			return nil, exitcode.BadUsage(fmt.Errorf("--report %s: %w", text, err))
		}
	}
	return opened, nil
}

// Destination is where a document is written to: standard output, and files.
type Destination struct {
	Stdout io.Writer
	format string
	// Style has colors, width and characters for a text on standard output.
	Style format.Style
	files []*reportFile
}

func (o *Destination) create(name, path string) error {
	file, err := CreateFile(path)
	if err != nil {
		return err
	}
	for _, other := range o.files {
		if other.path == file.path {
			file.Discard()
			return errors.New("the file is named twice")
		}
	}
	o.files = append(o.files, &reportFile{format: name, File: file})
	return nil
}

// Write writes the document to standard output and to each file. A file that fails does
// not keep the others from being written.
func (o *Destination) Write(document any) error {
	return errors.Join(expression.Write(o.Stdout, o.format, document, o.Style), o.WriteFiles(document))
}

// WriteFiles writes the document to each file alone.
func (o *Destination) WriteFiles(document any) error {
	var failures []error
	for _, file := range o.files {
		if err := file.write(document); err != nil {
			failures = append(failures, fmt.Errorf("could not write --report %s=%s: %w", file.format, file.path, err))
		}
	}
	return errors.Join(failures...)
}

// Close deletes what was created and not completed.
func (o *Destination) Close() {
	for _, file := range o.files {
		file.Discard()
	}
}

// reportFile is a file for a document in one format.
type reportFile struct {
	*File

	format string
}

func (f *reportFile) write(document any) error {
	return f.Replace(func(w io.Writer) error { return format.Write(w, f.format, document, format.Style{}) })
}

func (f *Output) addText(c *cobra.Command) {
	f.AddColor(c)
	c.Flags().BoolVar(&f.Details, "details", false, "Also list what passed; show every text in full. For text output.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "details")
}

// LimitFlag is --limit of a table with at most standard entries by default.
func LimitFlag(c *cobra.Command, limit *int, standard int) {
	*limit = standard
	c.Flags().IntVar(limit, "limit", standard, "Maximum number of rows in text and wide output; 0 lists all. Other formats always list all.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "limit")
}

// LimitOf is the limit of a style for a value of --limit.
func LimitOf(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

// CheckLimit rejects a negative value of --limit.
func CheckLimit(limit int) error {
	if limit < 0 {
		return fmt.Errorf("--limit=%d: it must not be negative; 0 lists all", limit)
	}
	return nil
}

// AddColor adds --color.
func (f *Output) AddColor(c *cobra.Command) {
	c.Flags().StringVar(&f.Color, "color", terminal.ColorAuto,
		"Color in text: always, never, or auto, on a terminal unless NO_COLOR is set. Symbols require a terminal and a UTF-8 locale.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "color")
	completion.Fixed(c, "color", terminal.ColorAuto, terminal.ColorAlways, terminal.ColorNever)
}

func (f *Output) checkColor() error {
	values := []string{terminal.ColorAuto, terminal.ColorAlways, terminal.ColorNever}
	if slices.Contains(values, f.Color) {
		return nil
	}
	return fmt.Errorf("--color=%s: it must be one of %s", f.Color, strings.Join(values, ", "))
}

// style decides colors, width and characters of a text that is written to w.
func (f *Output) style(w io.Writer) format.Style {
	style := terminal.StyleOf(w, f.Color)
	style.Details, style.Hint = f.Details, "--details"
	return style
}

// File is a file that appears under its name once it is complete.
type File struct {
	path string
	// unfinished is the temporary file; nil once it was renamed or deleted.
	unfinished *os.File
}

// CreateFile creates a temporary file beside path, so that a path which cannot be written
// is found before anything else is done. The file must be discarded at the end.
func CreateFile(path string) (*File, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	file := &File{path: path}
	return file, file.create()
}

// create makes the temporary file, with the permissions of any new file: the
// permissions of temporary files would keep a web server from reading it.
func (f *File) create() error {
	name := filepath.Join(filepath.Dir(f.path), ".preflight-"+rand.Text())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides
	f.unfinished = file
	return err
}

// Replace writes the content, and renames the file to its path. After an error nothing of the content is left,
// and the file under its name is as before.
func (f *File) Replace(write func(io.Writer) error) error {
	if f.unfinished == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	if err := f.complete(write); err != nil {
		f.Discard()
		return err
	}
	err := f.unfinished.Close()
	f.unfinished = nil
	return err
}

func (f *File) complete(write func(io.Writer) error) error {
	err := write(f.unfinished)
	if err := errors.Join(err, f.unfinished.Sync()); err != nil {
		return err
	}
	return os.Rename(f.unfinished.Name(), f.path)
}

// Remove deletes the file under its name, if there is one.
func (f *File) Remove() error {
	if err := os.Remove(f.path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Discard deletes what was created and not completed.
func (f *File) Discard() {
	if f == nil || f.unfinished == nil {
		return
	}
	_ = f.unfinished.Close()
	_ = os.Remove(f.unfinished.Name())
	f.unfinished = nil
}

// resolve follows the symbolic links of a path to a regular file, or to one that does not
// exist yet. Anything else, such as a device, would be replaced and is an error.
func resolve(path string) (string, error) {
	directory, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return "", err
	}
	path = filepath.Join(directory, filepath.Base(path))
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case info.Mode()&os.ModeSymlink != 0:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", err
		}
		return resolve(path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	return path, nil
}
