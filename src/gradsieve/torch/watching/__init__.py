"""`gst.watch`: looking at how far back the gradient goes, and where the readings go to."""
