package option

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/signature/localfile"
)

// Key is equal for calls of a command that ask the same about the same clusters: by its flags, those
// with defaults as well, and by the content of the files that they name. A flag without an effect counts
// as one that changes the answer. Files that are not regular, or too large, are an error.
func Key(c *cobra.Command) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", c.Name())
	var failed error
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		if err := write(sum, flag); err != nil && failed == nil {
			failed = fmt.Errorf("--%s: %w", flag.Name, err)
		}
	})
	return hex.EncodeToString(sum.Sum(nil)), failed
}

// write writes what a flag adds to the key.
func write(sum io.Writer, flag *pflag.Flag) error {
	switch Of(flag).Effect {
	case OnDisplay:
		return nil
	case OnAnswerByContent:
		fmt.Fprintf(sum, "%s\n", flag.Name)
		return writeContents(sum, values(flag))
	case OnAnswer, OnClusters:
	}
	_, err := fmt.Fprintf(sum, "%s=%q\n", flag.Name, flag.Value.String())
	return err
}

// values are the values of a flag.
func values(flag *pflag.Flag) []string {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{flag.Value.String()}
}

// The bounds of the files of one flag: their number, their bytes, and the directories in each other.
// A longer chain of directories is one of symbolic links that has no end.
const (
	maxFiles = 10_000
	maxBytes = 256 << 20
	maxDepth = 10
)

// contents adds files to a key.
type contents struct {
	sum   io.Writer
	files int
	bytes int64
}

// writeContents writes the digests of the files with these names, and of all files in directories with these names.
// A name that no file has, such as a URL, is written itself.
func writeContents(sum io.Writer, names []string) error {
	c := contents{sum: sum}
	for _, name := range names {
		_, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			_, err = fmt.Fprintf(sum, "value %q\n", name)
		} else if err == nil {
			err = c.add(name, "", 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add writes the digest of a file, or of the files in a directory, by the path below the name of the flag.
func (c *contents) add(path, below string, depth int) error {
	if c.files++; c.files > maxFiles || depth > maxDepth {
		return fmt.Errorf("%s: more than %d files, or more than %d directories in each other, cannot be compared", path, maxFiles, maxDepth)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.file(path, below)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.sum, "directory %q\n", below)
	for _, entry := range entries {
		if err := c.add(filepath.Join(path, entry.Name()), filepath.Join(below, entry.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *contents) file(path, below string) error {
	file, err := localfile.OpenRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, io.LimitReader(file, maxBytes-c.bytes+1))
	if err != nil {
		return err
	}
	if c.bytes += size; c.bytes > maxBytes {
		return fmt.Errorf("%s: files of more than %d MiB cannot be compared", path, maxBytes>>20)
	}
	_, err = fmt.Fprintf(c.sum, "file %q %x\n", below, digest.Sum(nil))
	return err
}
