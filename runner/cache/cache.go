// Package cache answers: have these bytes been read before?
//
// It keeps content by its digest in a directory, and believes nothing that it
// finds there: what is read is hashed to its end, and what does not have the
// digest is deleted and as good as not there. Several processes may use the same
// directory at the same time. What has not been used for the longest time goes
// first when there is too much.
package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultLimit is how many bytes a directory holds unless told otherwise.
	DefaultLimit = 1 << 30
	// maxFiles bounds how many files are kept, whatever their size.
	maxFiles = 10_000
	// abandoned is the age at which an unfinished file is nobody's any more.
	abandoned = time.Hour
	// unfinished is what the names of unfinished files begin with.
	unfinished = "unfinished-"
)

// Directory keeps content in files named by their digest.
type Directory struct {
	path  string
	limit int64
}

// Open uses the directory, and makes it where it is missing, for this user
// alone. It shall hold no more than limit bytes. The error says that nothing can
// be kept there.
func Open(path string, limit int64) (*Directory, error) {
	d := &Directory{path: filepath.Join(path, "sha256"), limit: limit}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("cannot use the cache: %w", err)
	}
	probe, err := os.CreateTemp(d.path, unfinished)
	if err != nil {
		return nil, fmt.Errorf("cannot use the cache: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("cannot use the cache: %w", err)
	}
	return d, nil
}

// Get returns the content with the digest ("sha256:<hex>") when all of it is
// there, in no more than most bytes. It never returns other content.
func (d *Directory) Get(digest string, most int64) ([]byte, bool) {
	path, ok := d.file(digest)
	if !ok {
		return nil, false
	}
	content, err := read(path, most)
	if err != nil {
		return nil, false
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != filepath.Base(path) {
		_ = os.Remove(path) // whoever reads it next comes to the same conclusion
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it only goes a little earlier
	return content, true
}

// read takes regular files alone: another one could keep us waiting.
func read(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, errors.New("not a file of the expected size")
	}
	file, err := os.Open(path) //nolint:gosec // the name is a digest
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, err
	}
	return content, nil
}

// Put keeps the content. It is there as a whole or not at all, whatever happens
// meanwhile. The error says why it is not: then it is read again another time.
func (d *Directory) Put(digest string, content []byte) error {
	path, ok := d.file(digest)
	if sum := sha256.Sum256(content); !ok || hex.EncodeToString(sum[:]) != filepath.Base(path) {
		return fmt.Errorf("the content does not have the digest %.80q", digest)
	}
	if int64(len(content)) > d.limit {
		return fmt.Errorf("%d bytes are more than the cache holds", len(content))
	}
	if err := d.write(path, content); err != nil {
		return fmt.Errorf("cannot keep %s in the cache: %w", digest, err)
	}
	return d.shrink()
}

func (d *Directory) write(path string, content []byte) (err error) {
	file, err := os.CreateTemp(d.path, unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if _, err := file.Write(content); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// kept is one file in the directory.
type kept struct {
	name string
	size int64
	used time.Time
}

// shrink deletes what was not used for the longest time, until all is in the
// limits. What another process has deleted meanwhile is no trouble.
func (d *Directory) shrink() error {
	files, total, err := d.list()
	if err != nil {
		return err
	}
	for i := 0; i < len(files) && (total > d.limit || len(files)-i > maxFiles); i++ {
		if err := os.Remove(filepath.Join(d.path, files[i].name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot shrink the cache: %w", err)
		}
		total -= files[i].size
	}
	return nil
}

// list returns what is kept, the longest unused first, and the size of it all.
// It deletes what a process that died left unfinished.
func (d *Directory) list() ([]kept, int64, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot shrink the cache: %w", err)
	}
	var files []kept
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted meanwhile, or not ours
		}
		if strings.HasPrefix(entry.Name(), unfinished) {
			if time.Since(info.ModTime()) > abandoned {
				_ = os.Remove(filepath.Join(d.path, entry.Name())) // the next one tries again
			}
			continue
		}
		files = append(files, kept{name: entry.Name(), size: info.Size(), used: info.ModTime()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	return files, total, nil
}

// file is where the content with the digest is kept.
func (d *Directory) file(digest string) (string, bool) {
	hash, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(hash) {
		return "", false
	}
	return filepath.Join(d.path, hash), true
}
