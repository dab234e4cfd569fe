"""Pictures and pages. The layers below compute the content; this layer only draws it."""
