package baseline

import (
	"slices"
	"strconv"
	"strings"
)

// redactedCause is why a kind is not read in a redacted State: the cause may name what was not read.
const redactedCause = "it was not read completely"

// Redacted is the State in which hash replaces the names of the namespaces of users and of what is in them, and the
// facts that are made of names; problems have neither messages nor nodes, and what is Unread has no cause. A later
// State that is redacted by the same hash has the same keys and facts, so that the two can be compared; names of users
// cannot be read from it. Objects of the cluster, such as its nodes, keep their names.
func (s State) Redacted(hash func(name string) string) State {
	redacted := s
	redacted.Objects = make(map[Key]Object, len(s.Objects))
	for key, object := range s.Objects {
		redacted.Objects[key.Redacted(hash)] = object.redacted(key, hash)
	}
	redacted.Leaving = make(map[string]bool, len(s.Leaving))
	for namespace := range s.Leaving {
		redacted.Leaving[Key{Kind: Namespace, Name: namespace}.Redacted(hash).Name] = true
	}
	redacted.Deleting = make(map[Key]bool, len(s.Deleting))
	for key := range s.Deleting {
		redacted.Deleting[key.Redacted(hash)] = true
	}
	redacted.Named = make(map[Key]string, len(s.Named))
	for key, operator := range s.Named {
		redacted.Named[key.Redacted(hash)] = operator
	}
	redacted.Unread = nil
	for kind := range s.Unread {
		if redacted.Unread == nil {
			redacted.Unread = map[Kind]string{}
		}
		redacted.Unread[kind] = redactedCause
	}
	return redacted
}

// Redacted is the key with its namespace and name replaced, where the namespace is one of a user.
func (k Key) Redacted(hash func(name string) string) Key {
	if !k.ofUser() {
		if name, labels, found := strings.Cut(k.Name, labelsOfAlert); found && k.Kind == Alert { // which may name what it is about
			k.Name = name + labelsOfAlert + hash(labels)
		}
		return k
	}
	if k.Kind == Namespace {
		return Key{Kind: k.Kind, Name: hash(k.Name)}
	}
	return Key{Kind: k.Kind, Namespace: hash(k.Namespace), Name: hash(k.Namespace + "/" + k.Name)}
}

// labelsOfAlert begins the labels in the name of an alert.
const labelsOfAlert = "{"

func (k Key) ofUser() bool {
	if k.Kind == Namespace {
		return !Key{Namespace: k.Name}.Platform()
	}
	return k.Namespace != "" && !k.Platform()
}

// redacted replaces the facts that are made of names, and digests without a key of what can be guessed.
func (o Object) redacted(key Key, hash func(name string) string) Object {
	if key.ofUser() {
		if o.Detail != "" && RowOf(key.Kind).Named {
			o.Detail = hash(key.Namespace + "/" + o.Detail)
		}
		if _, err := strconv.ParseUint(o.Revision, 10, 64); err != nil && o.Revision != "" {
			o.Revision = hash(key.Namespace + "/" + o.Revision)
		}
	}
	if namespace, name, found := strings.Cut(o.Detail, "/"); found && RowOf(key.Kind).Served { // objects of the cluster, with the name of a Service
		service := Key{Kind: Service, Namespace: namespace, Name: name}.Redacted(hash)
		o.Detail = service.Namespace + "/" + service.Name
	}
	o.Owner, o.Refs = o.Owner.Redacted(hash), slices.Clone(o.Refs)
	for at := range o.Refs {
		o.Refs[at] = o.Refs[at].Redacted(hash)
	}
	o.Problems = slices.Clone(o.Problems)
	for at := range o.Problems {
		o.Problems[at].Message, o.Problems[at].Node = "", ""
	}
	return o
}
