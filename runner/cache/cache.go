// Package cache answers: is the content of this digest, or a graph of this update service,
// stored on this machine?
//
// It stores content by digest in a directory, and graphs in another. Files are not trusted: content is
// hashed when it is read, and deleted when the digest does not match. Several
// processes may use a directory concurrently. The least recently used content is
// evicted first.
package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
)

const (
	// DefaultLimit is the default limit of a directory, in bytes.
	DefaultLimit = 1 << 30
	// maxFiles bounds the number of files, whatever their size.
	maxFiles = 10_000
	// abandoned is the age at which an unfinished file is deleted.
	abandoned  = time.Hour
	unfinished = "unfinished-"
)

// Directory stores content in files named by digest.
type Directory struct {
	path  string
	limit int64
}

// Open opens the directory, and creates it with access for this user only if it
// does not exist. It holds at most limit bytes. An error means that the directory
// is not writable.
func Open(path string, limit int64) (*Directory, error) { return open(path, "sha256", limit) }

func open(path, name string, limit int64) (*Directory, error) {
	d := &Directory{path: filepath.Join(path, name), limit: limit}
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

// Get returns the content with the digest ("sha256:<hex>"), if it is stored and
// has no more than most bytes. It never returns other content.
func (d *Directory) Get(digest string, most int64) ([]byte, bool) {
	path, ok := d.file(digest)
	if !ok {
		return nil, false
	}
	content, err := d.read(filepath.Base(path), most)
	if err != nil {
		return nil, false
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != filepath.Base(path) {
		_ = os.Remove(path) // otherwise the next read detects the mismatch again
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // otherwise it is only evicted earlier
	return content, true
}

// read reads a regular file of no more than most bytes: reading any other could block.
// What is checked is the open file, which another user of the directory cannot replace.
func (d *Directory) read(name string, most int64) (_ []byte, err error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, errors.New("not a file of the expected size")
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, err
	}
	return content, nil
}

// Put stores the content atomically. An error means that it is not stored, or that the limit could not be enforced.
func (d *Directory) Put(digest string, content []byte) error {
	path, ok := d.file(digest)
	if sum := sha256.Sum256(content); !ok || hex.EncodeToString(sum[:]) != filepath.Base(path) {
		return fmt.Errorf("the content does not have the digest %.80q", digest)
	}
	if int64(len(content)) > d.limit {
		return fmt.Errorf("%d bytes exceed the limit of the cache", len(content))
	}
	if err := d.write(path, content); err != nil {
		return fmt.Errorf("cannot store %s in the cache: %w", digest, err)
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

type stored struct {
	name string
	size int64
	used time.Time
}

// shrink deletes the least recently used files until the limits hold. Another
// process may delete files concurrently.
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

// list returns the stored files, the least recently used first, and their total
// size. It deletes abandoned unfinished files.
func (d *Directory) list() ([]stored, int64, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot shrink the cache: %w", err)
	}
	var files []stored
	var total int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted concurrently, or not a file
		}
		if strings.HasPrefix(entry.Name(), unfinished) {
			if time.Since(info.ModTime()) > abandoned {
				_ = os.Remove(filepath.Join(d.path, entry.Name())) // otherwise the next call tries again
			}
			continue
		}
		if !isHash(entry.Name()) {
			continue // not of the cache, which may be linked to another directory
		}
		files = append(files, stored{name: entry.Name(), size: info.Size(), used: info.ModTime()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b stored) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	return files, total, nil
}

func (d *Directory) file(digest string) (string, bool) {
	hash, ok := strings.CutPrefix(digest, "sha256:")
	if !ok || !isHash(hash) {
		return "", false
	}
	return filepath.Join(d.path, hash), true
}

// isHash reports whether the name can be the hash of stored content.
func isHash(name string) bool {
	content, err := hex.DecodeString(name)
	return err == nil && len(content) == sha256.Size && strings.ToLower(name) == name
}

const (
	// graphsLimit bounds all graphs, in bytes. The largest public one has 0.4 MB.
	graphsLimit = 256 << 20
	// envelopeLimit bounds what a file has beside the graph, in bytes. A channel and a URL
	// are bounded by the command line.
	envelopeLimit = 1 << 20
)

// Graphs stores the graphs of update services, each by its updateservice.Key. They are not
// authenticated: a graph is advice.
type Graphs struct{ directory *Directory }

// OpenGraphs opens the graphs in the directory of a cache, as Open does. They have at most
// 256 MiB; the oldest are evicted first.
func OpenGraphs(path string) (*Graphs, error) {
	directory, err := open(path, "graphs", graphsLimit)
	if err != nil {
		return nil, err
	}
	return &Graphs{directory}, nil
}

type storedGraph struct {
	URL          string          `json:"url"`
	Channel      string          `json:"channel"`
	Architecture string          `json:"architecture"`
	Time         time.Time       `json:"time"`
	Graph        json.RawMessage `json:"graph"`
}

// Put stores a graph, a JSON document, with the time at which it was received, and replaces the one stored before. The
// file is replaced atomically.
func (g *Graphs) Put(key updateservice.Key, received time.Time, content []byte) error {
	document := documentOf(key)
	document.Time, document.Graph = received.UTC(), content
	encoded, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("cannot store the graph of channel %q in the cache: %w", key.Channel, err)
	}
	if err := g.directory.write(filepath.Join(g.directory.path, nameOf(key)), encoded); err != nil {
		return fmt.Errorf("cannot store the graph of channel %q in the cache: %w", key.Channel, err)
	}
	return g.directory.shrink()
}

// Get returns the stored graph and when it was received. It returns false if no graph is stored, or if the file belongs
// to another key.
func (g *Graphs) Get(key updateservice.Key) (content []byte, received time.Time, ok bool) {
	encoded, err := g.directory.read(nameOf(key), graph.MaxBytes+envelopeLimit)
	if err != nil {
		return nil, time.Time{}, false
	}
	var stored storedGraph
	want := documentOf(key)
	if json.Unmarshal(encoded, &stored) != nil || stored.URL != want.URL || stored.Channel != want.Channel ||
		stored.Architecture != want.Architecture || stored.Time.IsZero() {
		return nil, time.Time{}, false
	}
	return stored.Graph, stored.Time, true
}

// documentOf has the key, without the password that the URL may have.
func documentOf(k updateservice.Key) storedGraph {
	document := storedGraph{Channel: k.Channel, Architecture: k.Architecture}
	if parsed, err := url.Parse(k.URL); err == nil {
		document.URL = parsed.Redacted()
	}
	return document
}

// nameOf names the file of a graph by the hash of all parts of its key.
func nameOf(k updateservice.Key) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.URL, k.Channel, k.Architecture}, "\x00")))
	return hex.EncodeToString(sum[:])
}
