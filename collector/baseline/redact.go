package baseline

// Redacted is the State in which hash replaces the names of the namespaces of users and of what is in them, and the
// texts that are made of names. A later State that is redacted by the same hash has the same keys, so that the two
// can be compared; names cannot be read from it.
func (s State) Redacted(hash func(name string) string) State {
	redacted := s
	redacted.Objects = make(map[Key]Object, len(s.Objects))
	for key, object := range s.Objects {
		redacted.Objects[key.Redacted(hash)] = object
	}
	return redacted
}

// Redacted is the key with its namespace and name replaced, where the namespace is one of a user.
func (k Key) Redacted(hash func(name string) string) Key {
	if k.Namespace == "" || k.Platform() {
		return k
	}
	return Key{Kind: k.Kind, Namespace: hash(k.Namespace), Name: hash(k.Namespace + "/" + k.Name)}
}
