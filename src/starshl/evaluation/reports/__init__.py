"""Tables, charts and pages made from run summaries; nothing here knows a method or a paper."""
