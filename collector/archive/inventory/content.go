package inventory

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
	"github.com/openshift/update-preflight/collector/archive/packaging"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxFile bounds a file, in bytes, and maxPackedFile what is kept of it: a larger one is left out.
	maxFile, maxPackedFile = 48 << 20, 32 << 20
	// maxText bounds a file that is not read object by object, in bytes.
	maxText = 32 << 20
	// packedBlock bytes are compressed at a time, and packedPart bytes are kept in one piece.
	packedBlock, packedPart = 64 << 10, 128 << 10
)

// file is a file that is kept, compressed.
type file struct {
	path  string
	place layout.Place
	// packed are the parts of the compressed content, and size is the uncompressed size, in bytes.
	packed [][]byte
	size   int
	// cause is why it could not be kept; empty where it was.
	cause string
}

type packer struct {
	into  *s2.Writer
	parts [][]byte
	// part is the one that is written, and count the bytes of all.
	part  []byte
	count int
}

func newPacker() *packer {
	p := &packer{part: make([]byte, 0, packedPart)}
	p.into = s2.NewWriter(p, s2.WriterConcurrency(1), s2.WriterBlockSize(packedBlock))
	return p
}

var errTooLarge = fmt.Errorf("it is larger than %d bytes after compression", maxPackedFile)

// Write implements io.Writer for the compressed data.
func (p *packer) Write(packed []byte) (int, error) {
	if p.count += len(packed); p.count > maxPackedFile {
		return 0, errTooLarge
	}
	if len(p.part)+len(packed) > cap(p.part) {
		p.flush()
	}
	p.part = append(p.part, packed...)
	return len(packed), nil
}

func (p *packer) flush() {
	if len(p.part) > 0 {
		p.parts = append(p.parts, bytes.Clone(p.part))
		p.part = p.part[:0]
	}
}

// pack compresses a file. The cause is why its content is not kept; an error is about the archive.
func (p *packer) pack(name string, content io.Reader) (made *file, cause string, err error) {
	p.parts, p.part, p.count = nil, p.part[:0], 0
	p.into.Reset(p)
	size, err := p.into.ReadFrom(io.LimitReader(content, maxFile+1))
	err = errors.Join(err, p.into.Close())
	switch {
	case errors.Is(err, errTooLarge):
		return nil, errTooLarge.Error(), nil
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", name, err)
	case size > maxFile:
		return nil, fmt.Sprintf("it is larger than %d bytes", maxFile), nil
	}
	p.flush()
	return &file{path: name, packed: p.parts, size: int(size)}, "", nil
}

// unpackers are readers of the content of files, each with buffers of some blocks.
//
//nolint:gochecknoglobals // all calls share the pool
var unpackers = sync.Pool{New: func() any { return s2.NewReader(nil, s2.ReaderMaxBlockSize(packedBlock)) }}

// unpack calls do with the content, which ends with the call. Of a file that is not read, it returns the cause.
func (f *file) unpack(do func(content io.Reader) error) error {
	if f.cause != "" {
		return errors.New(f.cause)
	}
	content, ok := unpackers.Get().(*s2.Reader)
	if !ok {
		return errors.ErrUnsupported // the pool has no others
	}
	defer unpackers.Put(content)
	parts := make([]io.Reader, len(f.packed))
	for i, part := range f.packed {
		parts[i] = bytes.NewReader(part)
	}
	content.Reset(io.MultiReader(parts...))
	return do(content)
}

// objects calls do with each object, which ends with the call.
func (f *file) objects(do func(object []byte) error) (list objects.List, err error) {
	err = f.unpack(func(content io.Reader) error {
		list, err = objects.Read(content, do)
		return err
	})
	return list, err
}

// text is the content of a file that is not too large for one piece.
func (f *file) text() (text []byte, err error) {
	if f.size > maxText {
		return nil, fmt.Errorf("it has %d bytes, more than %d", f.size, maxText)
	}
	err = f.unpack(func(content io.Reader) error {
		text = make([]byte, f.size)
		_, err := io.ReadFull(content, text)
		return err
	})
	return text, err
}

var lineBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, packedBlock) }} //nolint:gochecknoglobals // a shared pool

// lines calls do with each line, which ends with the call, until it returns false. A line that is longer than a
// buffer comes in pieces, of which only the first begins a line.
func (f *file) lines(do func(line []byte, begins bool) (more bool)) error {
	return f.unpack(func(content io.Reader) error {
		buffered, ok := lineBuffers.Get().(*bufio.Reader)
		if !ok {
			return errors.ErrUnsupported // the pool has no others
		}
		defer lineBuffers.Put(buffered)
		defer buffered.Reset(nil)
		buffered.Reset(content)
		for begins := true; ; {
			line, err := buffered.ReadSlice('\n')
			full := errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !full && !errors.Is(err, io.EOF) {
				return err
			}
			if !do(line, begins) || err != nil && !full {
				return nil
			}
			begins = !full
		}
	})
}

// lost are objects that are missing with a directory of which nothing could be read.
type lost struct {
	extent layout.Extent
	cause  string
}

// lose notes a directory in the trees that may have objects there, and reports whether there are any.
func lose(trees []*tree, entry packaging.Entry) bool {
	found := false
	for _, each := range trees {
		if below, ok := each.root.Below(entry.Path); ok {
			each.hidden[below] = entry.Cause
		}
		if extent, ok := each.root.Extent(entry.Path); ok {
			cause := words.Line(fmt.Sprintf("%s cannot be read: %s", entry.Path, entry.Cause), 500)
			each.lost, found = append(each.lost, lost{extent, cause}), true
		}
	}
	return found
}

// lost stand for the objects of a resource that are missing with directories.
func (i *Inventory) lost(of Resource) []brokenFile {
	clusterScoped, namespaced := i.scope(of)
	var files []brokenFile
	for _, tree := range i.trees {
		for _, each := range tree.lost {
			within := each.extent
			switch {
			case !within.Holds(of.Group, of.Name):
			case within.Namespaced && of == Resource{Name: "namespaces"}: // whose files are in them
				files = append(files, brokenFile{place: layout.Place{Name: within.Namespace}, cause: each.cause})
			case within.Namespaced && clusterScoped && !namespaced, within.ClusterScoped && namespaced && !clusterScoped:
			default:
				files = append(files, brokenFile{place: layout.Place{Namespace: within.Namespace}, cause: each.cause})
			}
		}
	}
	return files
}

// scope reports which objects of a resource the archive has.
func (i *Inventory) scope(of Resource) (clusterScoped, namespaced bool) {
	for _, tree := range i.trees {
		for _, each := range tree.places[of] {
			clusterScoped = clusterScoped || each.place.Namespace == ""
			namespaced = namespaced || each.place.Namespace != ""
		}
	}
	return clusterScoped, namespaced
}

// ends are last fields that every object of a kind has, by the types of its API: one of them is there in a file that is whole, since
// printers sort fields, and what stands before them decides findings. The newest types are no such source: a CSINode has had a
// status since 2025 only.
func ends() map[string][]string {
	const counted, hook, status = "status.updatedMachineCount", "webhooks.timeoutSeconds", "status"
	return map[string][]string{
		"ClusterVersion": {"status.versionHash"}, "ClusterOperator": {"status.extension", "status.relatedObjects", "status.versions"},
		"APIRequestCount": {"status.requestCount"}, "MachineConfigPool": {counted}, "ClusterServiceVersion": {"spec.version", status},
		"MutatingWebhookConfiguration": {hook}, "ValidatingWebhookConfiguration": {hook},
		"CustomResourceDefinition": {status}, "APIService": {status}, "Namespace": {status}, "Pod": {status}, "PersistentVolume": {status},
		"Node": {"status.nodeInfo"}, "CSINode": {"spec.drivers"}, "StorageClass": {"volumeBindingMode"},
	}
}

// refuseTorn returns an error for the object of a file of YAML that ends within it, at the end of a line: whatever is there is YAML.
// What an API server has stored has a UID. Of a list, the end has its resourceVersion; an object without a time of creation was
// written by people.
func (f *file) refuseTorn(object []byte, kind string) error {
	if f.place.Name == "" || f.place.Kind != "" || f.isJSON() { // of "oc adm inspect" are files of one object of YAML
		return nil
	}
	var of map[string]any
	if err := json.Unmarshal(object, &of); err != nil {
		return err
	}
	if value, _, err := unstructured.NestedFieldNoCopy(of, "metadata", "creationTimestamp"); err == nil && value == nil &&
		has(of, "metadata.name") {
		return nil
	}
	required := [][]string{{"metadata.name"}, {"metadata.uid"}}
	// which need not have any
	if end := ends()[kind]; end != nil && (has(of, "webhooks") || !strings.HasSuffix(kind, "WebhookConfiguration")) {
		required = append(required, end)
	}
	if configured, _, _ := unstructured.NestedString(of, "metadata", "annotations",
		mcoGroup+"/generated-by-controller-version"); kind == "MachineConfig" && configured != "" {
		required = append(required, []string{"spec.osImageURL"})
	}
	for _, alternatives := range required {
		if !slices.ContainsFunc(alternatives, func(path string) bool { return has(of, path) }) {
			return fmt.Errorf("the %s %q has no %s, possibly because the end of a file is missing", kind, f.place.Name, alternatives[0])
		}
	}
	return nil
}

// has reports whether an object has a field; of a list, its last element.
func has(of any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	if list, ok := of.([]any); ok {
		return len(list) == 0 || has(list[len(list)-1], path)
	}
	fields, _ := of.(map[string]any)
	value, ok := fields[name]
	return ok && (!deeper || has(value, rest))
}

// isJSON reports whether the content is JSON, whose end is never missing without an error.
func (f *file) isJSON() bool {
	found := false
	_ = f.lines(func(line []byte, _ bool) (more bool) {
		found = bytes.HasPrefix(bytes.TrimSpace(line), []byte("{"))
		return len(bytes.TrimSpace(line)) == 0
	}) // what cannot be read is refused elsewhere
	return found
}
