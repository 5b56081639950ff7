package eval_test

import stdcontext "context"

// context is for what runs once for several tests and must not end with the first of them.
func context() stdcontext.Context { return stdcontext.Background() }
