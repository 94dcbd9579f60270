package command

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/collector/format"
)

// outputFlag is -o for a document.
func outputFlag(c *cobra.Command, output *string, document any) {
	c.Flags().StringVarP(output, "output", "o", *output, "Output format: "+strings.Join(format.Names(document), ", ")+".")
	completeFormats(c, "output", "", format.Names(document))
}

// outputFlags are -o and --report: the same document in several formats.
type outputFlags struct {
	textFlags

	format string
	files  []string
}

func (f *outputFlags) add(c *cobra.Command, document any) {
	f.format, f.color, f.details = "text", colorAuto, true
	outputFlag(c, &f.format, document)
	c.Flags().StringArrayVar(&f.files, "report", nil, "FORMAT=FILE: write the same document in one of the formats of --output to a file as well. May be repeated.")
	completeFormats(c, "report", "=", format.Names(document))
}

// addText also adds the flags that change a text.
func (f *outputFlags) addText(c *cobra.Command, document any) {
	f.add(c, document)
	f.textFlags.add(c)
}

// maxReportFiles bounds the number of files of one command.
const maxReportFiles = 20

// check rejects formats that the document does not have, and files without a name.
func (f *outputFlags) check(document any) error {
	if err := format.Check(f.format, document); err != nil {
		return err
	}
	if err := f.checkColor(); err != nil {
		return err
	}
	if len(f.files) > maxReportFiles {
		return fmt.Errorf("--report: %d files, but at most %d are written", len(f.files), maxReportFiles)
	}
	for _, text := range f.files {
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

// open checks the flags and creates the files, so that one which cannot be written is
// bad input before anything else is done. The output must be closed.
func (f *outputFlags) open(stdout io.Writer, document any) (*output, error) {
	if err := f.check(document); err != nil {
		return nil, usageError(err)
	}
	opened := &output{stdout: stdout, format: f.format, style: f.style(stdout)}
	for _, text := range f.files {
		name, path, _ := strings.Cut(text, "=")
		if err := opened.create(name, path); err != nil {
			opened.close()
			return nil, usageError(fmt.Errorf("--report %s: %w", text, err))
		}
	}
	return opened, nil
}

// output is where a document is written to: standard output, and files.
type output struct {
	stdout io.Writer
	format string
	// style is that of a text on standard output.
	style format.Style
	files []*reportFile
}

// create adds a file.
func (o *output) create(name, path string) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	for _, other := range o.files {
		if other.path == path {
			return errors.New("the file is named twice")
		}
	}
	file := &reportFile{format: name, path: path}
	if err := file.create(); err != nil {
		return err
	}
	o.files = append(o.files, file)
	return nil
}

// write writes the document to standard output and to each file. A file that fails does
// not keep the others from being written.
func (o *output) write(document any) error {
	return errors.Join(format.Write(o.stdout, o.format, document, o.style), o.writeFiles(document))
}

// writeFiles writes the document to each file alone.
func (o *output) writeFiles(document any) error {
	var failures []error
	for _, file := range o.files {
		if err := file.write(document); err != nil {
			failures = append(failures, fmt.Errorf("could not write --report %s=%s: %w", file.format, file.path, err))
		}
	}
	return errors.Join(failures...)
}

// close deletes what was created and not completed.
func (o *output) close() {
	for _, file := range o.files {
		file.discard()
	}
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

// reportFile is a file that appears under its name once it is complete.
type reportFile struct {
	format, path string
	// unfinished is the temporary file; nil once it was renamed or deleted.
	unfinished *os.File
}

// create makes the temporary file, with the permissions of any new file: those of a
// temporary one would keep a web server from reading it.
func (f *reportFile) create() error {
	name := filepath.Join(filepath.Dir(f.path), ".preflight-"+rand.Text())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // the umask decides
	f.unfinished = file
	return err
}

// write writes the document, and renames the file to its path.
func (f *reportFile) write(document any) error {
	if f.unfinished == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	err := format.Write(f.unfinished, f.format, document, format.Style{})
	if err := errors.Join(err, f.unfinished.Sync()); err != nil {
		return err
	}
	if err := os.Rename(f.unfinished.Name(), f.path); err != nil {
		return err
	}
	err = f.unfinished.Close()
	f.unfinished = nil
	return err
}

// discard deletes the temporary file.
func (f *reportFile) discard() {
	if f.unfinished == nil {
		return
	}
	_ = f.unfinished.Close()
	_ = os.Remove(f.unfinished.Name())
	f.unfinished = nil
}
