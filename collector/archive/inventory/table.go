package inventory

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/openshift/update-preflight/collector/archive/layout"
	"github.com/openshift/update-preflight/collector/archive/objects"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

// Table contains the objects of one resource, and records how complete they are.
type Table struct {
	resource Resource
	// once is done when the files were read.
	once sync.Once
	// Kind of the objects; empty if unknown.
	Kind string
	// entries are sorted by namespace and name.
	entries []Entry
	// all proves that the objects of all namespaces were gathered, namespaces of some; empty without a proof.
	all        string
	namespaces map[string]string
	broken     []brokenFile
	// nonexistent are objects of any resource that the cluster did not have, and unread are those
	// of this one that the program which wrote the archive could not read.
	nonexistent []string
	unread      []gap.Gap
}

type brokenFile struct {
	place layout.Place
	cause string
}

// part is a resource, in a namespace or, without one, in all.
type part struct {
	Resource

	namespace string
}

type tables map[Resource]*Table

func (all tables) begin(key Resource) *Table {
	t := all[key]
	if t == nil {
		t = &Table{resource: key, namespaces: map[string]string{}}
		all[key] = t
	}
	return t
}

// Table are the objects of a resource, which are read once. With a namespace, the objects of others
// may be left out.
func (i *Inventory) Table(key Resource, namespace string) *Table {
	t, filled := i.part(part{key, namespace})
	t.once.Do(func() { i.fill(t, filled) })
	return t
}

// part is the table that has the objects of a part, with the namespace of its objects; empty for all.
func (i *Inventory) part(of part) (t *Table, namespace string) {
	whole := part{Resource: of.Resource}
	if len(i.lists()) > 0 || len(i.index.Complete) > 0 { // their files are not of one namespace, or counted
		of = whole
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for _, each := range []part{whole, of} {
		if t := i.tables[each]; t != nil {
			return t, each.namespace
		}
	}
	t = &Table{resource: of.Resource, namespaces: map[string]string{}}
	i.tables[of] = t
	return t, of.namespace
}

// fill reads the objects of the first trees that have files of the resource.
func (i *Inventory) fill(t *Table, namespace string) {
	if from := i.lists()[t.resource]; from != nil {
		t.Kind, t.entries, t.all, t.broken = from.Kind, slices.Clone(from.entries), from.all, slices.Clone(from.broken)
		maps.Copy(t.namespaces, from.namespaces)
		namespace = ""
	}
	for _, extra := range []bool{false, true} {
		found := false
		for _, tree := range i.trees {
			if tree.extra == extra && tree.root.Kind != layout.Lists && len(tree.places[t.resource]) > 0 {
				t.addTree(tree, namespace, &i.leftOut)
				found = true
			}
		}
		if found {
			break
		}
	}
	t.broken = append(t.broken, i.lost(t.resource)...)
	t.finish()
	i.extend(t)
}

// addTree adds the objects of a tree: first from its lists, then from each newer file of one object, since a
// must-gather contains most objects twice.
func (t *Table) addTree(from *tree, namespace string, leftOut *omissions) {
	var single []*file
	for _, each := range from.places[t.resource] {
		switch {
		case namespace != "" && each.place.Namespace != "" && each.place.Namespace != namespace:
		case each.place.Name == "":
			t.add(from, each, leftOut)
		default:
			single = append(single, each)
		}
	}
	t.finish()
	listed := &Table{entries: t.entries}
	for _, each := range single {
		known, ok := listed.Find(each.place.Namespace, each.place.Name)
		if !ok || known.revision == 0 || each.revision() != known.revision {
			t.add(from, each, leftOut)
		}
	}
}

// revision is the resourceVersion of the only object of a file, as the printers of Kubernetes write
// it; 0 where it is not found.
func (f *file) revision() uint64 {
	revision, metadata := uint64(0), false
	_ = f.lines(func(line []byte, begins bool) (more bool) {
		value, found := bytes.CutPrefix(line, []byte(`  resourceVersion: "`))
		switch {
		case !begins:
		case !metadata:
			metadata = string(line) == "metadata:\n"
		case found:
			number, _, _ := bytes.Cut(value, []byte(`"`))
			revision = revisionOf(string(number))
			return false
		default:
			return len(line) > 0 && line[0] == ' '
		}
		return true
	}) // one that cannot be read is not found
	return revision
}

// add adds the objects of a file. One that cannot be read is left out as a whole.
func (t *Table) add(in *tree, from *file, leftOut *omissions) {
	list, entries, err := readEntries(from, t.Kind)
	if err != nil {
		leftOut.add(in.pathOf(from), err.Error())
		t.broken = append(t.broken, brokenFile{place: from.place, cause: words.Line(fmt.Sprintf("%s cannot be read: %v", from.path, err), 500)})
		return
	}
	t.entries = append(t.entries, entries...)
	if kind, ok := itemKind(list); ok && t.Kind == "" {
		t.Kind = kind
	}
	if from.place.Name == "" && list.Whole() {
		t.prove(from.place.Namespace, proofList)
	}
}

// proofList: a list states that it has all objects.
const proofList = "the list of the API server"

// finish sorts the objects, and keeps the newest of each.
func (t *Table) finish() {
	slices.SortStableFunc(t.entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	kept := t.entries[:0]
	for _, each := range t.entries {
		last := len(kept) - 1
		switch {
		case last < 0 || kept[last].Namespace != each.Namespace || kept[last].Name != each.Name:
			kept = append(kept, each)
		default:
			t.confuse(kept[last], each)
			if each.revision >= kept[last].revision {
				kept[last] = each
			}
		}
	}
	t.entries = slices.Clip(kept)
	t.broken = slices.DeleteFunc(t.broken, func(file brokenFile) bool { // another file has the object
		_, found := t.Find(file.place.Namespace, file.place.Name)
		return file.place.Name != "" && found
	})
}

// confuse leaves nodes open of which two have one name, as in an archive whose names were replaced
// by one text. Other objects are replaced under their name while an archive is gathered.
func (t *Table) confuse(a, b Entry) {
	if (t.resource == Resource{Name: "nodes"}) && a.uid != "" && b.uid != "" && a.uid != b.uid {
		t.broken = append(t.broken, brokenFile{cause: words.Line(fmt.Sprintf("several have the name %q, probably because names were "+
			"removed", a.Name),
			500)})
	}
}

// Find is the object of that name; cluster-scoped objects have no namespace.
func (t *Table) Find(namespace, name string) (Entry, bool) {
	at, found := slices.BinarySearchFunc(t.entries, Entry{Namespace: namespace, Name: name}, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if !found {
		return Entry{}, false
	}
	return t.entries[at], true
}

// In are the objects of a namespace or, without one, all.
func (t *Table) In(namespace string) []Entry {
	if namespace == "" {
		return t.entries
	}
	var found []Entry
	for _, each := range t.entries {
		if each.Namespace == namespace {
			found = append(found, each)
		}
	}
	return found
}

// Missing returns the gap in the objects of a namespace, or in all objects without one; name is the name of an
// object that was not found.
func (t *Table) Missing(namespace, name string) (gap.Gap, bool) {
	lack := gap.Gap{Group: t.resource.Group, Resource: t.resource.Name, Namespace: namespace, Name: name}
	for _, file := range t.broken {
		if namespace == "" || file.place.Namespace == "" || file.place.Namespace == namespace {
			lack.Cause = file.cause
			break
		}
	}
	if lack.Cause == "" && (t.all != "" || namespace != "" && t.namespaces[namespace] != "" || t.isNonexistent(namespace, name)) {
		return gap.Gap{}, false
	}
	lack.Cause = cmp.Or(lack.Cause, t.unreadCause(namespace, name))
	some := len(t.In(namespace)) > 0 || namespace == "" && len(t.namespaces) > 0
	if lack.Partial = name == "" && some; lack.Partial && lack.Cause == "" && namespace == "" && len(t.namespaces) > 0 {
		lack.Cause = "from " + words.Count(len(t.namespaces), "namespace")
	}
	return lack, true
}

// unreadCause is why objects could not be read; empty where that is not known.
func (t *Table) unreadCause(namespace, name string) string {
	overlap := func(a, b string) bool { return a == "" || b == "" || a == b }
	for _, each := range t.unread {
		if overlap(each.Namespace, namespace) && overlap(each.Name, name) {
			return each.Cause
		}
	}
	return ""
}

// isNonexistent reports whether the cluster did not have an object.
func (t *Table) isNonexistent(namespace, name string) bool {
	return name != "" && slices.Contains(t.nonexistent, t.resource.Object(namespace, name))
}

// listed reads the files of lists: the kinds of their objects say which resources they are.
func listed(trees []*tree, leftOut *omissions) tables {
	all := tables{}
	for _, tree := range trees {
		if tree.root.Kind != layout.Lists {
			continue
		}
		for key, files := range tree.places {
			for _, each := range files {
				all.addList(tree, key, each, leftOut)
			}
		}
	}
	return all
}

// addList adds the objects of a file. A file that is named after their resource contains all of them or, if the
// objects have one namespace, all of that namespace.
func (all tables) addList(in *tree, named Resource, from *file, leftOut *omissions) {
	from.place = layout.Place{}
	found := map[Resource]map[string]bool{} // the namespaces of the objects
	list, err := from.objects(func(object []byte) error {
		made, of, err := entryOf(object, layout.Place{}, "")
		if err != nil {
			return err
		}
		key := named.of(of.APIVersion, of.Kind)
		if found[key] == nil {
			found[key] = map[string]bool{}
		}
		found[key][made.Namespace] = true
		t := all.begin(key)
		t.Kind, t.entries = of.Kind, append(t.entries, made)
		return nil
	})
	if err != nil {
		leftOut.add(in.pathOf(from), err.Error())
		found[named] = nil
		for key := range found {
			if named.names(key) {
				t := all.begin(key)
				t.broken = append(t.broken, brokenFile{cause: words.Line(fmt.Sprintf("%s cannot be read: %v", from.path, err), 500)})
			}
		}
		return
	}
	all.proveList(named, list, found)
}

// proveList proves what a list has whose objects, by resource and namespace, were found. One with
// objects of another resource than the one by which its file is named proves nothing.
func (all tables) proveList(named Resource, list objects.List, found map[Resource]map[string]bool) {
	if kind, ok := itemKind(list); ok && len(found) == 0 {
		found[named.of(list.APIVersion, kind)] = nil
	} else if ok {
		of := named.of(list.APIVersion, kind)
		if _, same := found[of]; !same {
			return
		}
	}
	if len(found) == 0 {
		found[named] = nil
	}
	for key, namespaces := range found {
		switch {
		case !list.Whole() || len(found) > 1 || !named.names(key):
		case len(namespaces) != 1 || namespaces[""]:
			all.begin(key).prove("", proofList)
		default:
			for namespace := range namespaces {
				all.begin(key).prove(namespace, proofList)
			}
		}
	}
}
